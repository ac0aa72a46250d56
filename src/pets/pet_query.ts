import { integerParameter, invalidParameter, readQuery } from "../http/validation.ts";
import { EXPECTED_STATUS, isPetStatus, PET_STATUSES, type PetStatus } from "./pet.ts";

/** Which animals to list. */
export interface PetQuery {
  /** Most animals to return. */
  readonly limit: number;
  /** Undefined for any status. */
  readonly status: PetStatus | undefined;
  /** Only animals with a greater id; 0 for all. */
  readonly after: number;
}

/** The names of its parameters. */
export const PET_PARAMETERS: readonly string[] = ["limit", "status", "cursor"];

const LIMIT = { min: 1, max: 100, otherwise: 20 };

/** How many queries there are without a cursor: of any status or of one, with each limit. */
export const FIRST_PAGES: number = (1 + PET_STATUSES.length) * LIMIT.max;

/**
 * The query parameters of `listPets`.
 *
 * @throws {ApiError} `invalid_request`, naming the parameter and what was expected.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(parsePetQuery("?status=sold"), { limit: 20, status: "sold", after: 0 });
 * const next = { limit: 20, status: "sold", after: 7 } as const;
 * assertEquals(parsePetQuery(toQueryString(next)), next);
 * ```
 */
export function parsePetQuery(query: string): PetQuery {
  const parameters = readQuery(query, PET_PARAMETERS);
  const limit = integerParameter(parameters, "limit", LIMIT);
  const status = parameters.get("status");
  if (status !== undefined && !isPetStatus(status)) throw invalidParameter("status", EXPECTED_STATUS);
  return { limit, status, after: parseCursor(parameters.get("cursor")) };
}

/** The one query string that stands for all that parse to this query. */
export function toQueryString({ limit, status, after }: PetQuery): string {
  const filter = status === undefined ? "" : `&status=${status}`;
  const cursor = after === 0 ? "" : `&cursor=${encodeCursor(after)}`;
  return `?limit=${limit}${filter}${cursor}`;
}

function parseCursor(cursor: string | undefined): number {
  if (cursor === undefined) return 0;
  const id = decodeCursor(cursor);
  if (Number.isSafeInteger(id) && id > 0 && encodeCursor(id) === cursor) return id;
  throw invalidParameter("cursor", "one that a Link header of this service gave");
}

/** Opaque, so that nobody comes to rely on what is in it. */
function encodeCursor(id: number): string {
  return btoa(String(id)).replaceAll("=", "");
}

function decodeCursor(cursor: string): number {
  try {
    return Number(atob(cursor));
  } catch {
    return NaN;
  }
}
