import { type Schema, text } from "./schema.ts";

/** Control characters, which could disrupt the operator's terminal: a Unicode property. */
const CONTROLS = "Cc";

/** Characters that change the direction of the text around them: a Unicode property. */
export const BIDI_CONTROLS = "Bidi_Control";

/** What the rules for names mean in ASCII. All languages can read this pattern, and it takes linear time. */
const ASCII_RULES = String.raw`^ *[^\x00-\x20\x7f][^\x00-\x1f\x7f]*$`;

/**
 * A name of at most `max` characters, with at least one that is not whitespace, and without control characters or any
 * that have the Unicode properties `forbidden`.
 *
 * @example
 * ```ts
 * import { assertEquals, assertThrows } from "@std/assert";
 *
 * const name = nameText(5, "The item's name");
 * assertEquals(name.parse("Rex", "name"), "Rex");
 * assertThrows(() => name.parse("R\n", "name"), Error, "no control characters (Unicode Cc)");
 * ```
 */
export function nameText(max: number, description: string, ...forbidden: readonly string[]): Schema<string> {
  const properties = [CONTROLS, ...forbidden];
  const ranges = properties.map((property) => `\\p{${property}}`).join("");
  const rule = `have a character other than whitespace, and no control characters (Unicode ${
    properties.join(" and ")
  })`;
  const schema = text({
    max,
    description:
      `${description}, stored as sent. It must ${rule} or lone surrogates; the pattern shows what this ` +
      "means in ASCII. Its length is counted in Unicode code points.",
    // White space, then one other character, then the rest. This pattern never backtracks.
    pattern: new RegExp(String.raw`^[^${ranges}\S]*[^${ranges}\s][^${ranges}]*$`, "u"),
    rule,
  });
  const answerJson = text({ max, description }).json;
  return { ...schema, json: { ...schema.json, pattern: ASCII_RULES }, answerJson };
}
