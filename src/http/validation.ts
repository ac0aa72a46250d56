import type { JsonObject } from "./body.ts";
import { ApiError } from "./error.ts";

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

/**
 * A member of a body as a string of 1 to `max` characters (Unicode code points). JSON can escape half a
 * surrogate pair, which is none: RFC 7493 section 2.1 forbids it, and some clients cannot read a list that has
 * one.
 *
 * @throws {ApiError} `invalid_request`, naming the field and what was expected.
 */
export function stringField(object: JsonObject, field: string, max: number): string {
  const value = object[field];
  if (typeof value !== "string") throw invalidField(field, "a string", value);
  if (!value.isWellFormed()) {
    throw new ApiError("invalid_request", `${field} must not contain half a surrogate pair.`);
  }
  if (value === "" || (value.length > max && [...value].length > max)) {
    throw new ApiError("invalid_request", `${field} must have 1 to ${max} characters.`);
  }
  return value;
}

/**
 * A member of a body as an int64.
 *
 * @throws {ApiError} `invalid_request`, naming the field and what was expected.
 */
export function int64Field(object: JsonObject, field: string): bigint {
  const value = object[field];
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value === "bigint" && value >= INT64_MIN && value <= INT64_MAX) return value;
  throw invalidField(field, "an integer from -9223372036854775808 to 9223372036854775807", value);
}

/**
 * A member of a body as an integer from `min` to `max`, both safe.
 *
 * @throws {ApiError} `invalid_request`, naming the field and what was expected.
 */
export function integerField(
  object: JsonObject,
  field: string,
  { min, max }: { min: number; max: number },
): number {
  const value = object[field];
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) return value;
  throw invalidField(field, `an integer from ${min} to ${max}`, value);
}

/** The error that says what the field must be, and that it is required when it is missing. */
export function invalidField(field: string, expected: string, value: unknown): ApiError {
  return new ApiError(
    "invalid_request",
    value === undefined ? `${field} is required and must be ${expected}.` : `${field} must be ${expected}.`,
  );
}

/**
 * Query parameters by name.
 *
 * @throws {ApiError} `invalid_request` when one of the named parameters is given twice.
 */
export function readQuery(query: string, names: readonly string[]): ReadonlyMap<string, string> {
  const parameters = new URLSearchParams(query);
  const values = new Map<string, string>();
  for (const name of names) {
    const [value, ...more] = parameters.getAll(name);
    if (more.length > 0) throw new ApiError("invalid_request", `${name} must be given at most once.`);
    if (value !== undefined) values.set(name, value);
  }
  return values;
}

/**
 * A query parameter as an integer from `min` to `max`, in at most as many digits; `otherwise` where it is not
 * given.
 *
 * @throws {ApiError} `invalid_request`, naming the parameter and what was expected.
 */
export function integerParameter(
  parameters: ReadonlyMap<string, string>,
  name: string,
  { min, max, otherwise }: { min: number; max: number; otherwise: number },
): number {
  const text = parameters.get(name);
  if (text === undefined) return otherwise;
  const value = /^\d+$/.test(text) && text.length <= `${max}`.length ? Number(text) : NaN;
  if (value >= min && value <= max) return value;
  throw invalidParameter(name, `an integer from ${min} to ${max}`);
}

/** The error that says what the query parameter must be. */
export function invalidParameter(name: string, expected: string): ApiError {
  return new ApiError("invalid_request", `The query parameter ${name} must be ${expected}.`);
}
