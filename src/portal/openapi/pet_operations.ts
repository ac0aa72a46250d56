import { IF_NONE_MATCH, NOT_MODIFIED, type Operation, type Parameter } from "./operation.ts";
import { DEPRECATED } from "./responses.ts";
import { INT64 } from "./schema.ts";

const PET_ID: Parameter = {
  name: "petId",
  in: "path",
  required: true,
  description: "Identifier of the animal",
  schema: INT64,
  example: 1,
};
const IDEMPOTENCY_KEY: Parameter = {
  name: "Idempotency-Key",
  in: "header",
  description:
    "1 to 255 visible ASCII characters other than the double quote, bare or in double quotes. Whoever repeats the request with it " +
    "within 24 hours gets the first reply again, and nothing is made twice.",
  schema: { type: "string", maxLength: 257, pattern: '^("[!#-~]{1,255}"|[!#-~]{1,255})$' },
};
const IF_MATCH: Parameter = {
  name: "If-Match",
  in: "header",
  description:
    "Changes the animal only if this still is its ETag, so that nobody's change is overwritten unseen: one or " +
    "more tags, in their double quotes, or `*`. POST and PATCH answer with the animal's ETag; `PATCH {}` changes " +
    "nothing and answers with it; so does `GET /v1/pets/{petId}`. The ETag of a list is another.",
  schema: { type: "string" },
};
const IF_OTHER: Parameter = {
  name: "If-None-Match",
  in: "header",
  description: "Changes the animal only if this is not its ETag: one or more tags, in their double quotes.",
  schema: { type: "string" },
};
const REPLAYABLE: readonly string[] = ["Idempotency-Replayed"];

/** What clients do with animals and messages. */
export const PET_OPERATIONS: readonly Operation[] = [
  {
    id: "listPets",
    method: "GET",
    path: "/v1/pets",
    tag: "Animals",
    summary: "List animals",
    description:
      'Animals in the order of their ids. `Link` with `rel="next"` leads to the next page, if there is one.',
    access: "key",
    parameters: [
      {
        name: "limit",
        in: "query",
        description: "Maximum number of animals returned",
        schema: { type: "integer", minimum: 1, maximum: 100, default: 20 },
      },
      {
        name: "status",
        in: "query",
        description: "Filter by availability status",
        schema: { $ref: "#/components/schemas/PetStatus" },
      },
      {
        name: "cursor",
        in: "query",
        description: "Where the page begins: from the `Link` of the page before",
        schema: { type: "string", minLength: 1 },
      },
      IF_NONE_MATCH,
    ],
    successes: [
      {
        status: 200,
        description: "A paginated list of animals",
        schema: "Pets",
        headers: ["ETag", "Cache-Control", "Link"],
      },
      { ...NOT_MODIFIED, headers: ["ETag", "Cache-Control", "Link"] },
    ],
    errors: ["invalid_request"],
  },
  {
    id: "createPet",
    method: "POST",
    path: "/v1/pets",
    tag: "Animals",
    summary: "Add an animal",
    access: "key",
    parameters: [IDEMPOTENCY_KEY],
    body: "NewPet",
    successes: [{
      status: 201,
      description: "The created animal, including the assigned `id`",
      schema: "Pet",
      headers: ["Location", "Content-Location", "ETag", ...REPLAYABLE],
    }],
    errors: ["idempotency_key_reused", "idempotency_limit"],
  },
  {
    id: "getPet",
    method: "GET",
    path: "/v1/pets/{petId}",
    tag: "Animals",
    summary: "Get an animal",
    description: "To be removed on 5 December 2030. Use `GET /pets` with the `status` filter instead.",
    deprecated: true,
    access: "key",
    parameters: [PET_ID, IF_NONE_MATCH],
    successes: [
      {
        status: 200,
        description: "The animal",
        schema: "Pet",
        headers: ["ETag", "Cache-Control", ...DEPRECATED],
      },
      { ...NOT_MODIFIED, headers: ["ETag", "Cache-Control", ...DEPRECATED] },
    ],
    errors: ["pet_not_found", "gone"],
  },
  {
    id: "updatePet",
    method: "PATCH",
    path: "/v1/pets/{petId}",
    tag: "Animals",
    summary: "Change an animal",
    description: "Only the account that added it may. A body without any known member changes nothing.",
    isExtension: true,
    access: "key",
    parameters: [PET_ID, IF_MATCH, IF_OTHER],
    body: "PetPatch",
    bodyType: "application/merge-patch+json",
    successes: [{ status: 200, description: "The animal as it is now", schema: "Pet", headers: ["ETag"] }],
    errors: ["not_your_pet", "pet_not_found", "precondition_failed"],
  },
  {
    id: "deletePet",
    method: "DELETE",
    path: "/v1/pets/{petId}",
    tag: "Animals",
    summary: "Remove an animal",
    description: "Only the account that added it may. Its id is never used again.",
    isExtension: true,
    access: "key",
    parameters: [PET_ID, IF_MATCH, IF_OTHER],
    successes: [{ status: 204, description: "The animal is gone" }],
    errors: ["not_your_pet", "pet_not_found", "precondition_failed"],
  },
  {
    id: "createMessage",
    method: "POST",
    path: "/v1/messages",
    tag: "Messages",
    summary: "Queue a message",
    access: "key",
    parameters: [IDEMPOTENCY_KEY],
    body: "NewMessage",
    successes: [{
      status: 202,
      description: "The message was queued",
      schema: "Message",
      headers: REPLAYABLE,
    }],
    errors: ["idempotency_key_reused", "idempotency_limit", "queue_full"],
  },
];
