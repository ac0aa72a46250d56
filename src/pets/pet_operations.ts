import { deprecationHeaders } from "../web/deprecation.ts";
import { entityTags, IDEMPOTENCY_KEY, IF_NONE_MATCH, NOT_MODIFIED } from "../web/headers.ts";
import { operation } from "../web/operation.ts";
import type { Call, Operation } from "../resource/call.ts";
import { integer, optional, type Schema } from "../web/schema.ts";
import { VersionedCache } from "../engine/cache.ts";
import type { VersionRow } from "../engine/versions.ts";
import { ApiError, ERRORS } from "../web/error.ts";
import { type Preconditions, quickEtagOf, requirePreconditions } from "../web/etag.ts";
import { whenReady } from "../base/when_ready.ts";
import { stringifyJson } from "../web/json.ts";
import { Representation } from "../web/representation.ts";
import { createResponse, jsonResponse } from "../web/response.ts";
import { createOnce } from "../resource/create_once.ts";
import { DEPRECATION_OPERATION, getPetDeprecation, SUNSET_DAY } from "./deprecation.ts";
import { NEW_PET, PET, type Pet, PET_ERRORS, PET_PATCH, PET_STATUS, PETS } from "./pet.ts";
import { CURSOR, MAX_LIMIT, PetPages, PETS_PATH } from "./pet_pages.ts";
import type { OwnedPet, PetStore } from "./pet_store.ts";

const MAX_PETS = 5_000;

/** Options of {@linkcode petOperations}. */
export interface PetOperationsOptions {
  readonly pets: PetStore;
  /** The row whose version changes when an animal does. */
  readonly catalogue: VersionRow;
  /** Prefix of URLs; undefined for relative ones. */
  readonly publicUrl: string | undefined;
}

const PRECONDITIONS = {
  "If-Match": entityTags(
    "Requires the animal's ETag to be one of these tags. Each tag is in double quotes; `*` matches any. Use this header " +
      "to avoid overwriting a change that you have not seen. POST, PATCH and `GET /v1/pets/{petId}` return the animal's " +
      "ETag. A PATCH with `{}` changes nothing, but returns it too. The ETag of a list is a different one.",
  ),
  "If-None-Match": entityTags(
    "Requires the animal's ETag to be none of these tags. Each tag is in double quotes.",
  ),
};

/** The ID in a path, at most 2^53 - 1. No animal can have an invalid ID, so it gets 404. */
const PET_ID: Schema<number> = {
  ...integer(1, Number.MAX_SAFE_INTEGER),
  json: { type: "integer", format: "int64", description: "Identifier of the animal", examples: [1] },
  fromStrings([text = ""]) {
    if (!/^[1-9]\d*$/.test(text)) throw petNotFound("; petId must be an integer from 1");
    if (!Number.isSafeInteger(Number(text))) throw petNotFound();
    return Number(text);
  },
};

/** Operations on animals, and the document about the removal of `getPet`. */
export function petOperations({ pets, catalogue, publicUrl }: PetOperationsOptions): Operation[] {
  const pages = new PetPages(pets, catalogue);
  const deprecated = getPetDeprecation(publicUrl ?? "");
  const headersOfGet = deprecationHeaders(deprecated);
  const representations = new VersionedCache<number, Representation | null>(catalogue, MAX_PETS);

  const listPets = operation(
    {
      id: "listPets",
      method: "GET",
      path: PETS_PATH,
      access: "key",
      tag: "Animals",
      summary: "List animals",
      description:
        'Returns animals in ascending order of id. If there are more, `Link` with `rel="next"` has the next page\'s URL.',
      query: {
        limit: optional(integer(1, MAX_LIMIT, { description: "Maximum number of animals returned" }), 20),
        status: optional({
          ...PET_STATUS,
          json: { ...PET_STATUS.json, description: "Filter by availability status" },
        }),
        cursor: optional(CURSOR),
      },
      headers: { "If-None-Match": IF_NONE_MATCH },
      answers: {
        200: {
          description: "A paginated list of animals",
          body: PETS,
          headers: ["ETag", "Cache-Control", "Link"],
        },
        304: { ...NOT_MODIFIED, headers: ["ETag", "Cache-Control", "Link"] },
      },
    },
    ({ query, headers }, { base }) =>
      whenReady(pages.get(query), (page) => page.respondTo(headers["If-None-Match"], base)),
  );

  const createPet = operation({
    id: "createPet",
    method: "POST",
    path: PETS_PATH,
    access: "key",
    tag: "Animals",
    summary: "Add an animal",
    description: "Adds an animal to the catalogue.",
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    body: NEW_PET,
    answers: {
      201: {
        description: "The created animal, including the assigned `id`",
        body: PET,
        headers: ["Location", "Content-Location", "ETag", "Idempotency-Replayed"],
      },
    },
    errors: [ERRORS.idempotency_key_reused],
  }, async ({ headers, body, bytes }, call: Call) =>
    createOnce<Pet>(headers["Idempotency-Key"], call, {
      operation: "createPet",
      bytes,
      creation: pets.adding({ id: await pets.ids.next(), ...body }, call.accountId),
      reply(pet) {
        const json = stringifyJson(pet);
        const location = `${call.base}${PETS_PATH}/${pet.id}`;
        // The body is the content of the location (RFC 9110 section 8.7). With a head this long, Deno sends head and
        // body in one system call.
        const headers = { location, "content-location": location, etag: quickEtagOf(json) };
        return { status: 201, headers, body: json };
      },
    }));

  const getPet = operation(
    {
      id: "getPet",
      method: "GET",
      path: `${PETS_PATH}/{petId}`,
      access: "key",
      tag: "Animals",
      summary: "Get an animal",
      description:
        `Deprecated, and will be removed on ${SUNSET_DAY}. Use \`GET ${PETS_PATH}\` with the \`status\` filter instead.`,
      deprecated,
      params: { petId: PET_ID },
      headers: { "If-None-Match": IF_NONE_MATCH },
      answers: {
        200: {
          description: "The animal",
          body: PET,
          headers: ["ETag", "Cache-Control"],
        },
        304: NOT_MODIFIED,
      },
      errors: [PET_ERRORS.notFound],
    },
    ({ params, headers }) =>
      whenReady(representations.get(params.petId, () => render(params.petId)), (representation) => {
        if (representation === null) throw petNotFound();
        return representation.respondTo(headers["If-None-Match"]);
      }),
  );

  const updatePet = operation({
    id: "updatePet",
    method: "PATCH",
    path: `${PETS_PATH}/{petId}`,
    access: "key",
    tag: "Animals",
    summary: "Update an animal",
    description:
      "Only the account that added the animal can update it. Fields that you leave out stay as they are. An `id` is " +
      "ignored, so that you can send back what you read.",
    isExtension: true,
    params: { petId: PET_ID },
    headers: PRECONDITIONS,
    body: PET_PATCH,
    bodyType: "application/merge-patch+json",
    answers: { 200: { description: "The updated animal", body: PET, headers: ["ETag"] } },
    errors: [PET_ERRORS.notYours, PET_ERRORS.notFound, ERRORS.precondition_failed],
  }, async ({ params, headers, body }, { transact, accountId }: Call) => {
    const changed = await transact(pets.changing(params.petId, (owned) => {
      const before = changeable(owned, accountId, headers);
      const after = { ...before, ...body };
      return stringifyJson(after) === stringifyJson(before) ? before : after;
    }));
    if (changed === null) throw petNotFound();
    const json = stringifyJson(changed.pet);
    return jsonResponse(json, { headers: { etag: quickEtagOf(json) } });
  });

  const deletePet = operation({
    id: "deletePet",
    method: "DELETE",
    path: `${PETS_PATH}/{petId}`,
    access: "key",
    tag: "Animals",
    summary: "Delete an animal",
    description: "Only the account that added the animal can delete it. Its id is never reused.",
    isExtension: true,
    params: { petId: PET_ID },
    headers: PRECONDITIONS,
    answers: { 204: { description: "The animal was deleted" } },
    errors: [PET_ERRORS.notYours, PET_ERRORS.notFound, ERRORS.precondition_failed],
  }, async ({ params, headers }, { transact, accountId }: Call) => {
    await transact(pets.changing(params.petId, (owned) => {
      changeable(owned, accountId, headers);
      return null;
    }));
    return createResponse(null, { status: 204 });
  });

  async function render(id: number): Promise<Representation | null> {
    const json = await pets.find(id);
    return json === null
      ? null
      : new Representation(json, { headers: headersOfGet, etag: quickEtagOf(json) });
  }

  return [listPets, createPet, getPet, updatePet, deletePet, DEPRECATION_OPERATION];
}

/** The animal. Throws an ApiError unless the account owns it and the preconditions hold (RFC 9110 section 13.2). */
function changeable(owned: OwnedPet | null, accountId: string, headers: Preconditions): Pet {
  if (owned === null) throw petNotFound();
  if (owned.ownerId !== accountId) {
    throw new ApiError(PET_ERRORS.notYours, "Only the account that added an animal may update or delete it.");
  }
  requirePreconditions(headers, quickEtagOf(stringifyJson(owned.pet)));
  return owned.pet;
}

function petNotFound(reason = ""): ApiError {
  return new ApiError(PET_ERRORS.notFound, `No animal has this petId${reason}.`);
}
