import { ApiError } from "./error.ts";
import type { JsonObject } from "./body.ts";

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;

/**
 * The member as a string of `min` to `max` characters (Unicode code points). JSON can escape half a surrogate
 * pair, which is none: RFC 7493 section 2.1 forbids it, and some clients cannot read a list that has one.
 *
 * @throws {ApiError} `invalid_request`, naming the field and what was expected.
 */
export function stringField(
  object: JsonObject,
  field: string,
  { min, max }: { min: number; max: number },
): string {
  const value = object[field];
  if (typeof value !== "string") throw invalidField(field, "a string", value);
  if (!value.isWellFormed()) {
    throw new ApiError("invalid_request", `${field} must not contain half a surrogate pair.`);
  }
  const length = value.length <= max ? value.length : [...value].length;
  if (length < min || length > max) {
    throw new ApiError("invalid_request", `${field} must have ${min} to ${max} characters.`);
  }
  return value;
}

/**
 * The member as an int64.
 *
 * @throws {ApiError} `invalid_request`, naming the field and what was expected.
 */
export function int64Field(object: JsonObject, field: string): bigint {
  const value = object[field];
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value === "bigint" && value >= INT64_MIN && value <= INT64_MAX) return value;
  throw invalidField(field, "an integer from -9223372036854775808 to 9223372036854775807", value);
}

/** The error that says what the field must be, and that it is required when it is missing. */
export function invalidField(field: string, expected: string, value: unknown): ApiError {
  return new ApiError(
    "invalid_request",
    value === undefined ? `${field} is required and must be ${expected}.` : `${field} must be ${expected}.`,
  );
}
