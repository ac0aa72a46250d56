import { ApiError } from "../http/error.ts";
import { readQuery } from "../http/query.ts";
import { decodeCursor } from "./cursor.ts";
import { EXPECTED_STATUS, isPetStatus } from "./pet.ts";
import type { PetQuery } from "./pet_store.ts";

const DEFAULT_LIMIT = 20;
const MAX_LIMIT = 100;

/**
 * The query parameters of `listPets` (interface section 4.1).
 *
 * @throws {ApiError} `invalid_request`, naming the parameter and what was expected.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(parsePetQuery("?status=sold"), { limit: 20, status: "sold", after: 0 });
 * ```
 */
export function parsePetQuery(query: string): PetQuery {
  const parameters = readQuery(query, ["limit", "status", "cursor"]);
  const limit = parseLimit(parameters.get("limit"));
  const status = parameters.get("status");
  if (status !== undefined && !isPetStatus(status)) throw invalidParameter("status", EXPECTED_STATUS);
  const cursor = parameters.get("cursor");
  const after = cursor === undefined ? 0 : decodeCursor(cursor);
  if (after === undefined) throw invalidParameter("cursor", "one that a Link header of this service gave");
  return { limit, status, after };
}

function parseLimit(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT;
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (limit < 1 || limit > MAX_LIMIT) throw invalidParameter("limit", `an integer from 1 to ${MAX_LIMIT}`);
  return limit;
}

function invalidParameter(name: string, expected: string): ApiError {
  return new ApiError("invalid_request", `The query parameter ${name} must be ${expected}.`);
}
