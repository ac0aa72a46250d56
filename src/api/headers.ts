import type { Answer } from "./operation.ts";
import { Invalid, type Optional, optional, text } from "./schema.ts";

const TAG = String.raw`(?:W\/)?"[!#-~\x80-\xff]*"`;
/** Tags with commas in between; elements of the list may be empty (RFC 9110 sections 5.6.1 and 8.8.3). */
const TAGS = new RegExp(String.raw`^(?:,[ \t]*)*${TAG}[ \t]*(?:,[ \t]*(?:${TAG}[ \t]*)?)*$`);

/**
 * A header of entity tags, or `*` (RFC 9110 sections 13.1.1 and 13.1.2).
 *
 * @example
 * ```ts
 * import { assertThrows } from "@std/assert";
 *
 * const ifMatch = entityTags("Changes nothing else.");
 * ifMatch.parse('"3f42", W/"3f43"', "If-Match");
 * assertThrows(() => ifMatch.parse("3f42", "If-Match"), Invalid, "If-Match must be * or entity tags");
 * ```
 */
export function entityTags(description: string): Optional<string> {
  const tags = text({ description });
  return optional({
    ...tags,
    parse(value, subject) {
      const given = tags.parse(value, subject);
      if (given === "*" || TAGS.test(given)) return given;
      throw new Invalid(`${subject} must be * or entity tags in double quotes, such as "a3219ffc0c406b50"`);
    },
  });
}

/** What lets a client keep what it has (RFC 9110 section 13.1.2). A malformed one is as good as none. */
export const IF_NONE_MATCH: Optional<string> = optional(
  text({ description: "An ETag; 304 if the content still has it." }),
);

/** The answer to a client that has the content already. */
export const NOT_MODIFIED: Answer = {
  description: "The client has it already",
  headers: ["ETag", "Cache-Control"],
};
