import { type Schema, text } from "./schema.ts";

/** A set of characters with a Unicode property. */
interface Characters {
  readonly property: string;
  /** For a character class. The escapes also work in Python and Rust, whose clients use the document's patterns. */
  readonly ranges: string;
}

/** Control characters, which could disrupt the operator's terminal. */
export const CONTROLS: Characters = { property: "Cc", ranges: String.raw`\x00-\x1f\x7f-\x9f` };

/** Characters that change the direction of the text around them. */
export const BIDI_CONTROLS: Characters = {
  property: "Bidi_Control",
  ranges: String.raw`\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069`,
};

/**
 * A name of at most `max` characters, with at least one that is not whitespace, and without `forbidden` characters.
 *
 * @example
 * ```ts
 * import { assertEquals, assertThrows } from "@std/assert";
 *
 * const name = nameText(5, [CONTROLS], "The item's name");
 * assertEquals(name.parse("Rex", "name"), "Rex");
 * assertThrows(() => name.parse("R\n", "name"), Error, "no control characters (Unicode Cc)");
 * ```
 */
export function nameText(max: number, forbidden: readonly Characters[], description: string): Schema<string> {
  const ranges = forbidden.map(({ ranges }) => ranges).join("");
  const properties = forbidden.map(({ property }) => property).join(" and ");
  const schema = text({
    max,
    description:
      `${description}, stored as sent. It must have a character other than whitespace, and no control characters (Unicode ` +
      `${properties}) or lone surrogates. Its length is counted in Unicode code points.`,
    // White space, then one other character, then the rest. This pattern never backtracks.
    pattern: new RegExp(String.raw`^[^${ranges}\S]*[^${ranges}\s][^${ranges}]*$`, "u"),
    rule: `have a character other than whitespace, and no control characters (Unicode ${properties})`,
  });
  return { ...schema, answerJson: text({ max, description }).json };
}
