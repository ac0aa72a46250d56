import { isValid, optional } from "./objects.ts";
import { wasSentTwice } from "./request.ts";
import { text } from "./scalars.ts";
import { Invalid, type Optional, type Schema } from "./schema_types.ts";

const TAG = String.raw`(?:W\/)?"[!#-~\x80-\xff]*"`;
/** A list of entity tags. Its elements may be empty (RFC 9110 sections 5.6.1 and 8.8.3). */
const TAGS = new RegExp(String.raw`^(?:,[ \t]*)*${TAG}[ \t]*(?:,[ \t]*(?:${TAG}[ \t]*)?)*$`);

/** The usual form of such a list, for documents. All languages can read this pattern, and it takes linear time. */
const USUAL_TAGS = String.raw`^([*]|(W/)?"[!#-~]*"( *, *(W/)?"[!#-~]*")*)$`;

/**
 * A header with entity tags or `*` (RFC 9110 sections 13.1.1 and 13.1.2).
 */
export function entityTags(description: string): Optional<string> {
  const any = text({ description });
  return header({ ...any, json: { ...any.json, pattern: USUAL_TAGS } }, (tags, name) => {
    if (tags === "*" || TAGS.test(tags)) return tags;
    throw new Invalid(`${name} must be * or entity tags in double quotes, such as "a3219ffc0c406b50"`);
  });
}

/** The If-None-Match header of a read (RFC 9110 section 13.1.2). A malformed one is ignored. */
export const IF_NONE_MATCH: Optional<string> = optional(
  text({ description: "The ETag of a cached response. If it is current, you get 304." }),
);

/** The response for a client whose copy is current. */
export const NOT_MODIFIED = {
  description: "The cached response is still current",
  headers: ["ETag", "Cache-Control"],
} as const;

const MAX_KEY_LENGTH = 255;
const BARE_KEY = `[!#-~]{1,${MAX_KEY_LENGTH}}`;
const KEY_EXPECTED = `1 to ${MAX_KEY_LENGTH} visible ASCII characters other than the double quote`;
/** How long a repeated request with the same key gets the first response, in hours. */
export const REPLAY_HOURS = 24;

/**
 * The Idempotency-Key of a request, with or without the quotes of draft-ietf-httpapi-idempotency-key-header.
 */
export const IDEMPOTENCY_KEY: Optional<string> = header(
  once(text({
    pattern: new RegExp(`^("${BARE_KEY}"|${BARE_KEY})$`),
    rule: `be ${KEY_EXPECTED}, with or without double quotes around them`,
    description:
      `Makes the request safe to repeat within ${REPLAY_HOURS} hours. The same request with the same key gets the first ` +
      "response again, and nothing is created twice. A body with the same values is the same, however it is written. " +
      `A key is ${KEY_EXPECTED}, with or without double quotes around it.`,
    examples: ["8d3f0c4e-5b7a-4f0e-9c1d-2a6b7e8f9012"],
  })),
  (key) => key.replaceAll('"', ""),
);

/** A header that an operation refuses for a reason, which follows `because` in the message. Documents leave it out. */
export function refusedHeader(reason: string): Optional<string> {
  const refused = header(text(), (_value, name) => {
    throw new Invalid(`${name} is not allowed here, because ${reason}`);
  });
  return { ...refused, isHidden: true };
}

/** The schema of a header that may be sent only once. */
function once(schema: Schema<string>): Schema<string> {
  function parse(value: unknown, name: string): string {
    if (!wasSentTwice(`${value}`, (part) => isValid(schema, part))) return schema.parse(value, name);
    throw new Invalid(`${name} was sent twice`);
  }
  return { ...schema, parse };
}

function header(
  schema: Schema<string>,
  read: (value: string, name: string) => string,
): Optional<string> {
  return optional({ ...schema, parse: (value, name) => read(schema.parse(value, `The ${name}`), name) });
}
