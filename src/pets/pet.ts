import type { JsonObject } from "../http/body.ts";
import { CONTROLS, nameField, type NameRule, nameRule } from "../http/name.ts";
import { int64Field, invalidField } from "../http/validation.ts";

/** Availability of an animal. */
export const PET_STATUSES = ["available", "pending", "sold"] as const;

/** One of the availability statuses. */
export type PetStatus = typeof PET_STATUSES[number];

/** What the name of an animal has to be where one is sent; rows may hold others. */
export const PET_NAME: NameRule = nameRule(255, [CONTROLS]);

/** An animal to add. */
export interface NewPet {
  readonly name: string;
  /** An int64. */
  readonly categoryId: bigint;
  readonly status: PetStatus;
}

/** An animal of the catalogue. */
export interface Pet extends NewPet {
  /** Assigned by the service, ascending, at most 2^53 - 1. */
  readonly id: number;
}

/**
 * The animal that a request body describes; members it does not know are ignored.
 *
 * @throws {ApiError} `invalid_request`, naming the field and what was expected.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(parseNewPet({ name: "Rex", categoryId: 1n }), {
 *   name: "Rex",
 *   categoryId: 1n,
 *   status: "available",
 * });
 * ```
 */
export function parseNewPet(object: JsonObject): NewPet {
  return {
    name: nameField(object, PET_NAME),
    categoryId: int64Field(object, "categoryId"),
    status: parseStatus({ status: "available", ...object }),
  };
}

/**
 * What a merge patch (RFC 7396) changes of an animal. None of its members can be removed, so null is refused
 * like any other wrong value.
 *
 * @throws {ApiError} `invalid_request`, naming the field and what was expected.
 */
export function parsePetPatch(object: JsonObject): Partial<NewPet> {
  return {
    ...("name" in object ? { name: nameField(object, PET_NAME) } : {}),
    ...("categoryId" in object ? { categoryId: int64Field(object, "categoryId") } : {}),
    ...("status" in object ? { status: parseStatus(object) } : {}),
  };
}

function parseStatus({ status }: JsonObject): PetStatus {
  if (!isPetStatus(status)) throw invalidField("status", EXPECTED_STATUS, status);
  return status;
}

/**
 * The animal as JSON text, its int64 digit for digit. Rows hold it, too: what an earlier version stored has to come
 * out as it was, for its ETag to hold.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const pet = { id: 1, name: "Rex", categoryId: 9007199254740993n, status: "sold" } as const;
 * assertEquals(toJson(pet), '{"id":1,"name":"Rex","categoryId":9007199254740993,"status":"sold"}');
 * ```
 */
export function toJson({ id, name, categoryId, status }: Pet): string {
  return `{"id":${id},"name":${JSON.stringify(name)},"categoryId":${categoryId},"status":"${status}"}`;
}

/** What a status must be, in words. */
export const EXPECTED_STATUS: string = `one of ${PET_STATUSES.join(", ")}`;

/** Whether the value is an availability status. */
export function isPetStatus(value: unknown): value is PetStatus {
  return PET_STATUSES.some((status) => status === value);
}
