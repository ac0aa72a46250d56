import { type Schema, text } from "./schema.ts";

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
 * A name of at most `max` characters. It is not white space alone, and has none of the `forbidden` characters.
 *
 * @example
 * ```ts
 * import { assertEquals, assertThrows } from "@std/assert";
 *
 * const name = nameText(5, [CONTROLS], "The animal's name");
 * assertEquals(name.parse("Rex", "name"), "Rex");
 * assertThrows(() => name.parse("R\n", "name"), Error, "no control characters (Unicode Cc)");
 * ```
 */
export function nameText(max: number, forbidden: readonly Characters[], description: string): Schema<string> {
  const ranges = forbidden.map(({ ranges }) => ranges).join("");
  const properties = forbidden.map(({ property }) => property).join(" and ");
  return text({
    max,
    description:
      `${description}, kept as sent. It has a character other than white space, and no control characters (Unicode ` +
      `${properties}) or lone surrogates. Its length is counted in Unicode code points.`,
    // White space, then a character that is none, then the rest: each character is read once.
    pattern: new RegExp(String.raw`^[^${ranges}\S]*[^${ranges}\s][^${ranges}]*$`, "u"),
    rule: `have a character other than white space, and no control characters (Unicode ${properties})`,
  });
}
