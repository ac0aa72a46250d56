import { VersionedCache } from "../caching/versioned_cache.ts";
import type { Watched } from "../caching/watched.ts";
import { ApiError } from "../http/error.ts";
import { quickEtagOf } from "../http/etag.ts";
import { requireEntityTags, requirePreconditions } from "../http/preconditions.ts";
import { createResponse, jsonResponse, Representation } from "../http/response.ts";
import type { Call, Route } from "../http/router.ts";
import { whenReady } from "../http/when_ready.ts";
import { createOnce } from "../idempotency/create_once.ts";
import type { ReplyStore } from "../idempotency/reply_store.ts";
import { DEPRECATION_ROUTE, deprecationHeaders, isRemoved } from "./deprecation.ts";
import { parseNewPet, parsePetPatch, type Pet, toJson } from "./pet.ts";
import { PetPages, PETS_PATH } from "./pet_pages.ts";
import type { OwnedPet, PetStore } from "./pet_store.ts";

const MERGE_PATCH = "application/merge-patch+json";
const MAX_PETS = 5_000;

/** What the routes of animals stand on. */
export interface PetRoutesOptions {
  readonly pets: PetStore;
  /** The row whose version changes with every animal. */
  readonly catalogue: Watched;
  readonly replies: ReplyStore;
  /** What URLs begin with; undefined where they are relative. */
  readonly publicUrl: string | undefined;
}

/**
 * `listPets`, `createPet` and `getPet`, with the document that announces the end of the last; and beyond the
 * interface, `updatePet` and `deletePet`.
 */
export function petRoutes({ pets, catalogue, replies, publicUrl }: PetRoutesOptions): Route[] {
  const pages = new PetPages(pets, catalogue);
  const representations = new VersionedCache(catalogue, MAX_PETS, renderPet);
  const deprecated = deprecationHeaders(publicUrl ?? "");

  function listPets(request: Request, call: Call): Response | Promise<Response> {
    return whenReady(pages.get(call.query), (page) => page.respondTo(request, call.base));
  }

  async function createPet(request: Request, call: Call): Promise<Response> {
    const { bytes, object } = await call.readBody();
    const newPet = parseNewPet(object);
    return await createOnce<Pet>(request, call, replies, {
      operation: "createPet",
      bytes,
      create: (along) => pets.create(newPet, call.accountId, along),
      reply: (pet) => {
        const body = toJson(pet);
        const location = `${call.base}${PETS_PATH}/${pet.id}`;
        // The body is what is there (RFC 9110 section 8.7); and Deno sends it along with a head this long.
        const headers = { location, "content-location": location, etag: quickEtagOf(body) };
        return { status: 201, headers, body };
      },
    });
  }

  function getPet(request: Request, call: Call): Response | Promise<Response> {
    if (isRemoved(call.now)) {
      throw new ApiError(
        "gone",
        "This operation was removed. Use GET /v1/pets with the status filter.",
        deprecated,
      );
    }
    return whenReady(representations.get(parsePetId(call)), (representation) => {
      if (representation === null) throw petNotFound(deprecated);
      return representation.respondTo(request);
    });
  }

  async function renderPet(id: number): Promise<Representation | null> {
    const json = await pets.find(id);
    return json === null ? null : new Representation(json, { headers: deprecated, etag: quickEtagOf(json) });
  }

  async function updatePet(request: Request, call: Call): Promise<Response> {
    const { object } = await call.readBody({ otherType: MERGE_PATCH });
    const patch = parsePetPatch(object);
    requireEntityTags(request);
    const pet = await pets.change(parsePetId(call), (owned) => {
      const before = changeable(owned, request, call);
      const after = { ...before, ...patch };
      return toJson(after) === toJson(before) ? before : after;
    }, call.checks);
    if (pet === null) throw petNotFound();
    const json = toJson(pet);
    return jsonResponse(json, { headers: { etag: quickEtagOf(json) } });
  }

  async function deletePet(request: Request, call: Call): Promise<Response> {
    requireEntityTags(request);
    await pets.change(parsePetId(call), (owned) => {
      changeable(owned, request, call);
      return null;
    }, call.checks);
    return createResponse(null, { status: 204 });
  }

  const one = `${PETS_PATH}/:petId`;
  return [
    { method: "GET", path: PETS_PATH, access: "key", handler: listPets },
    { method: "POST", path: PETS_PATH, access: "key", handler: createPet, checksInCommit: true },
    { method: "GET", path: one, access: "key", handler: getPet },
    { method: "PATCH", path: one, access: "key", handler: updatePet, checksInCommit: true },
    { method: "DELETE", path: one, access: "key", handler: deletePet, checksInCommit: true },
    DEPRECATION_ROUTE,
  ];
}

/** The animal, if this request may change it as it is now (RFC 9110 section 13.2). */
function changeable(owned: OwnedPet | null, request: Request, { accountId }: Call): Pet {
  if (owned === null) throw petNotFound();
  if (owned.ownerId !== accountId) {
    throw new ApiError("not_your_pet", "Only the account that added an animal may change it.");
  }
  requirePreconditions(request, quickEtagOf(toJson(owned.pet)));
  return owned.pet;
}

function petNotFound(headers: Readonly<Record<string, string>> = {}): ApiError {
  return new ApiError("pet_not_found", "No animal has this petId.", headers);
}

/** The id that the path names; 0, which no animal has, when it is none. Ids are never beyond 2^53 - 1. */
function parsePetId({ params: { petId = "" } }: Call): number {
  const id = /^[1-9]\d{0,15}$/.test(petId) ? Number(petId) : 0;
  return Number.isSafeInteger(id) ? id : 0;
}
