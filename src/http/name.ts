import type { JsonObject } from "./body.ts";
import { ApiError } from "./error.ts";
import { stringField } from "./validation.ts";

/** What names have to be. */
export interface NameRule {
  /** Most characters (Unicode code points). */
  readonly maxLength: number;
  /** What they match; its source is for JSON Schema, too. */
  readonly pattern: RegExp;
  /** Characters that they do not have, in words. */
  readonly forbidden: string;
}

/** Characters with a Unicode property, as a class of a regular expression has them. */
interface Characters {
  readonly property: string;
  /** In escapes that Python and Rust understand, too, because clients are written in them. */
  readonly ranges: string;
}

/** Characters that a terminal may obey. */
export const CONTROLS: Characters = { property: "Cc", ranges: String.raw`\x00-\x1f\x7f-\x9f` };

/** Characters that change the direction of the text around them. */
export const BIDI_CONTROLS: Characters = {
  property: "Bidi_Control",
  ranges: String.raw`\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069`,
};

/**
 * A rule for names that are not white space alone, and have none of these characters.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const rule = nameRule(5, [CONTROLS]);
 * assertEquals(["Rex", " ", "R\n", "too long"].map((name) => isName(name, rule)), [true, false, false, false]);
 * ```
 */
export function nameRule(maxLength: number, characters: readonly Characters[]): NameRule {
  const ranges = characters.map(({ ranges }) => ranges).join("");
  return {
    maxLength,
    // White space, then a character that is none, then the rest: each character is read once.
    pattern: new RegExp(String.raw`^[^${ranges}\S]*[^${ranges}\s][^${ranges}]*$`, "u"),
    forbidden: `control characters (Unicode ${characters.map(({ property }) => property).join(" and ")})`,
  };
}

/** Whether the text is a name by the rule. */
export function isName(text: string, { maxLength, pattern }: NameRule): boolean {
  return text.isWellFormed() && [...text].length <= maxLength && pattern.test(text);
}

/**
 * The member `name` of a body.
 *
 * @throws {ApiError} `invalid_request`, saying what was expected.
 */
export function nameField(object: JsonObject, { maxLength, pattern, forbidden }: NameRule): string {
  const name = stringField(object, "name", maxLength);
  if (pattern.test(name)) return name;
  throw new ApiError(
    "invalid_request",
    `name must have a character other than white space, and no ${forbidden}.`,
  );
}
