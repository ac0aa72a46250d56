import { shown } from "../accounts/account_operations.ts";
import { operation } from "../web/operation.ts";
import type { Call, Operation } from "../resource/call.ts";
import { answer, integer, list, named, optional, type Parsed, text } from "../web/schema.ts";
import { ApiError } from "../web/error.ts";
import { createResponse } from "../web/response.ts";
import { PET_ERRORS, PET_MEMBERS, PET_PATCH } from "../pets/pet.ts";
import type { OwnedPet, PetStore } from "../pets/pet_store.ts";

/** Path of the animals of all accounts. */
export const PETS_PATH = "/operator/v1/pets";
/** Maximum number of animals in a page. */
export const MAX_PETS = 500;

/** An animal and the account that added it. */
export const OWNED_PET = named("OwnedPet", answer({ ...PET_MEMBERS, accountId: text() }));
/** A page of animals. */
export const OWNED_PETS = named("OwnedPets", list(OWNED_PET, MAX_PETS));

/** Operations on the animals of all accounts. */
export function petOperations(pets: PetStore): Operation[] {
  const common = { access: "operator", tag: "Animals", timeoutMs: 30_000 } as const;
  const ofPet = {
    ...common,
    path: `${PETS_PATH}/{petId}`,
    params: { petId: integer(1, Number.MAX_SAFE_INTEGER) },
    errors: [PET_ERRORS.notFound],
  } as const;

  const listPets = operation({
    ...common,
    id: "listOwnedPets",
    method: "GET",
    path: PETS_PATH,
    summary: "List animals with their owners",
    query: {
      limit: optional(integer(1, MAX_PETS, { description: "Maximum number of animals returned" }), 100),
      cursor: optional(integer(1, Number.MAX_SAFE_INTEGER, {
        description: "Where the page starts: the `cursor` in the `Link` header",
      })),
    },
    answers: {
      200: { description: "A page of animals", body: OWNED_PETS, headers: ["Link", "Cache-Control"] },
    },
  }, async ({ query: { limit, cursor } }) => {
    const { pets: some, next } = await pets.listOwned(limit, cursor);
    const headers = next === undefined
      ? {}
      : { link: `<${PETS_PATH}?limit=${limit}&cursor=${next}>; rel="next"` };
    return shown<typeof OWNED_PETS>(some.map(withOwner), 200, headers);
  });

  const updatePet = operation({
    ...ofPet,
    id: "updateOwnedPet",
    method: "PATCH",
    summary: "Update an animal of any account",
    body: PET_PATCH,
    bodyType: "application/merge-patch+json",
    answers: { 200: { description: "The updated animal", body: OWNED_PET, headers: ["Cache-Control"] } },
  }, async ({ params: { petId }, body }, { transact, note }: Call) => {
    const changed = await transact(
      pets.changing(petId, (owned) => ({ ...found(owned, petId).pet, ...body })),
    );
    note(`${petId}`);
    return shown<typeof OWNED_PET>(withOwner(found(changed, petId)));
  });

  const deletePet = operation({
    ...ofPet,
    id: "deleteOwnedPet",
    method: "DELETE",
    summary: "Delete an animal of any account",
    answers: { 204: { description: "The animal was deleted" } },
  }, async ({ params: { petId } }, { transact, note }: Call) => {
    await transact(pets.changing(petId, (owned) => (found(owned, petId), null)));
    note(`${petId}`);
    return createResponse(null, { status: 204 });
  });

  return [listPets, updatePet, deletePet];
}

function found(owned: OwnedPet | null, id: number): OwnedPet {
  if (owned === null) throw new ApiError(PET_ERRORS.notFound, `There is no animal with the id ${id}.`);
  return owned;
}

function withOwner({ pet, ownerId }: OwnedPet): Parsed<typeof OWNED_PET> {
  return { ...pet, accountId: ownerId };
}
