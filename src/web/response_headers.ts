import { int64 } from "./scalars.ts";
import type { JsonSchema } from "./schema_types.ts";

/** A count, or a number of seconds. It can exceed 32 bits. */
const COUNT = int64({ minimum: 0 }).json;

const TEXT: JsonSchema = { type: "string" };
const URL_TEXT: JsonSchema = { type: "string", format: "uri" };

/** The description of a header of responses in an OpenAPI document. */
export interface ResponseHeader {
  readonly description: string;
  readonly example?: string | number;
  readonly schema: JsonSchema;
  readonly required?: true;
}

/** Describes a header that every response has which lists it. By its example, it is a text or a count. */
export function requiredHeader(
  description: string,
  example: string | number,
  schema: JsonSchema = typeof example === "number" ? COUNT : TEXT,
): ResponseHeader {
  return { description, schema, example, required: true };
}

/**
 * Descriptions of HTTP's headers. Those that only some responses have lack an example, because a mock server sends it with
 * every response. A URL is an example of the operation that returns it.
 */
export const HTTP_HEADERS: Readonly<Record<string, ResponseHeader>> = {
  "Retry-After": requiredHeader("Seconds to wait before the next request", 21, { ...COUNT, minimum: 1 }),
  "WWW-Authenticate": requiredHeader("The challenge (RFC 6750)", 'Bearer realm="store"'),
  "Cache-Control": requiredHeader("Whether the response may be cached (RFC 9111)", "private, no-cache"),
  "ETag": requiredHeader("A hash of the content (RFC 9110)", '"a3219ffc0c406b50"'),
  "Link": { description: "Related URLs (RFC 8288)", schema: TEXT },
  "Location": { description: "URL of the new resource", schema: URL_TEXT, required: true },
  "Content-Location": { description: "The same URL: the body is the new resource", schema: URL_TEXT },
  "Idempotency-Replayed": { description: "`true` if this response repeats the first one", schema: TEXT },
  "Preference-Applied": {
    description: "`handling=strict` if the request is handled as Prefer asks",
    schema: TEXT,
  },
  "Deprecation": { description: "When the operation was deprecated (RFC 9745)", schema: TEXT },
  "Sunset": { description: "When the operation will be removed (RFC 8594)", schema: TEXT },
};
