import { int64 } from "./scalars.ts";
import type { JsonSchema } from "./schema_types.ts";

/** A count, or a number of seconds. It can exceed 32 bits. */
const COUNT = int64({ minimum: 0 }).json;

/** The description of a header of responses in an OpenAPI document. */
export interface ResponseHeader {
  readonly description: string;
  readonly example: string | number;
  readonly schema: JsonSchema;
  readonly required?: true;
}

/** Describes a header of responses in an OpenAPI document. By its example, it is a text or a count. */
function header(
  description: string,
  example: string | number,
  schema: JsonSchema = typeof example === "number" ? COUNT : { type: "string" },
): ResponseHeader {
  return { description, schema, example };
}

/** Describes a header that every response has which lists it. By its example, it is a text or a count. */
export function requiredHeader(
  description: string,
  example: string | number,
  schema?: JsonSchema,
): ResponseHeader {
  return { ...header(description, example, schema), required: true };
}

/** Descriptions of HTTP's headers. */
export const HTTP_HEADERS: Readonly<Record<string, ResponseHeader>> = {
  "Retry-After": requiredHeader("Seconds to wait before the next request", 21, { ...COUNT, minimum: 1 }),
  "WWW-Authenticate": requiredHeader("The challenge (RFC 6750)", 'Bearer realm="store"'),
  "Cache-Control": requiredHeader("Whether the response may be cached (RFC 9111)", "private, no-cache"),
  "ETag": requiredHeader("A hash of the content (RFC 9110)", '"a3219ffc0c406b50"'),
  "Link": header("Related URLs (RFC 8288)", '</v1/items?limit=20&cursor=MjA>; rel="next"'),
  "Location": requiredHeader("URL of the new resource", "https://api.example/v1/items/1", {
    type: "string",
    format: "uri",
  }),
  "Content-Location": header("The same URL: the body is the new resource", "https://api.example/v1/items/1"),
  "Idempotency-Replayed": header("Present if this response repeats the first one", "true"),
  "Preference-Applied": header("Present if the request is handled as Prefer asks", "handling=strict"),
  "Deprecation": header("When the operation was deprecated (RFC 9745)", "@1764892800"),
  "Sunset": header("When the operation will be removed (RFC 8594)", "Thu, 05 Dec 2030 00:00:00 GMT"),
};
