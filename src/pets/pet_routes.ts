import { readJsonObject } from "../http/body.ts";
import { Representation } from "../http/conditional.ts";
import { ApiError } from "../http/error.ts";
import { clientOrigin } from "../http/origin.ts";
import type { Call, Route } from "../http/router.ts";
import { createOnce } from "../idempotency/create_once.ts";
import type { ReplyStore } from "../idempotency/reply_store.ts";
import { DEPRECATION_HEADERS, DEPRECATION_ROUTE, refuseAfterSunset } from "./deprecation.ts";
import { PageCache } from "./page_cache.ts";
import { parseNewPet, type Pet, toJson } from "./pet.ts";
import type { PetStore } from "./pet_store.ts";

const PATH = "/v1/pets";

/** The routes of interface sections 4.1 to 4.3. */
export function petRoutes(pets: PetStore, replies: ReplyStore): Route[] {
  const pages = new PageCache(pets);

  async function listPets(request: Request, call: Call): Promise<Response> {
    const { representation, nextQuery } = await pages.get(call.query, call.arrived);
    const response = representation.respondTo(request);
    if (nextQuery !== undefined) {
      response.headers.set("link", `<${clientOrigin(request)}${PATH}${nextQuery}>; rel="next"`);
    }
    return response;
  }

  async function createPet(request: Request, call: Call): Promise<Response> {
    const { bytes, object } = await readJsonObject(request);
    const newPet = parseNewPet(object);
    return await createOnce<Pet>(request, call, replies, {
      operation: "createPet",
      bytes,
      create: (attachment) => pets.create(newPet, attachment),
      reply: (pet) => ({
        status: 201,
        headers: { location: `${PATH}/${pet.id}` },
        body: toJson(pet),
      }),
    });
  }

  async function getPet(request: Request, call: Call): Promise<Response> {
    refuseAfterSunset(call.now);
    const id = parsePetId(call.params.petId ?? "");
    const pet = id === undefined ? undefined : await pets.find(id);
    if (pet === undefined) {
      throw new ApiError("pet_not_found", "No animal has this petId.", DEPRECATION_HEADERS);
    }
    const validators = { etag: `"${pet.versionstamp}"`, ...DEPRECATION_HEADERS };
    return new Representation(pet.json, validators).respondTo(request);
  }

  return [
    { method: "GET", path: PATH, access: "key", handler: listPets },
    { method: "POST", path: PATH, access: "key", handler: createPet },
    { method: "GET", path: `${PATH}/:petId`, access: "key", handler: getPet },
    DEPRECATION_ROUTE,
  ];
}

/** The id, or undefined when no animal can have it: ids are never beyond 2^53 - 1. */
function parsePetId(text: string): number | undefined {
  if (!/^[1-9]\d{0,15}$/.test(text)) return undefined;
  const id = Number(text);
  return Number.isSafeInteger(id) ? id : undefined;
}
