import type { ErrorCode } from "../../http/error.ts";
import { ERROR_HELP } from "../error_help.ts";
import { COUNT, type Schema } from "./schema.ts";

const TEXT: Schema = { type: "string" };

/** Headers of responses. Those that are required come wherever a response names them. */
export const HEADERS: Readonly<Record<string, object>> = {
  "X-RateLimit-Limit": required("The limit currently applying to the caller", 60),
  "X-RateLimit-Remaining": required("Requests remaining", 59),
  "X-RateLimit-Reset": required("Unix timestamp at which the limit resets", 1_795_294_080),
  "RateLimit-Policy": required(
    "Each limit: q requests in w seconds",
    '"minute";q=60;w=60, "day";q=1000;w=86400',
  ),
  "RateLimit": required(
    "What is left of each limit: r requests, for t seconds",
    '"minute";r=59;t=21, "day";r=999;t=11541',
  ),
  "X-Request-Id": required("The client's own, if it is 1 to 64 visible characters", "5e5dd3e6-2b1c-7"),
  "Retry-After": required("Seconds to wait", 21, { ...COUNT, minimum: 1 }),
  "WWW-Authenticate": required("The challenge (RFC 6750)", 'Bearer realm="animal-store"'),
  "Cache-Control": required("Whether the response may be kept (RFC 9111)", "private, no-cache"),
  "ETag": required("A hash of the content (RFC 9110)", '"a3219ffc0c406b50"'),
  "Link": optional("Related URLs (RFC 8288)", '</v1/openapi.json>; rel="service-desc"'),
  "Location": required("URL of what was made", "https://pets.example/v1/pets/1", { ...TEXT, format: "uri" }),
  "Content-Location": optional("The same: the body is what was made", "https://pets.example/v1/pets/1"),
  "Idempotency-Replayed": optional("That this is the first reply again", "true"),
  "Deprecation": optional("Since when the operation is deprecated, if it is (RFC 9745)", "@1764892800"),
  "Sunset": optional("When the operation ends, if it does (RFC 8594)", "Thu, 05 Dec 2030 00:00:00 GMT"),
};

function required(description: string, example: string | number, schema?: Schema): object {
  return { ...optional(description, example, schema), required: true };
}

function optional(
  description: string,
  example: string | number,
  schema: Schema = typeof example === "number" ? COUNT : TEXT,
): object {
  return { description, schema, example };
}

const ALWAYS: readonly string[] = [
  "X-Request-Id",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "RateLimit-Policy",
  "RateLimit",
];

/** Headers of what is deprecated. */
export const DEPRECATED: readonly string[] = ["Deprecation", "Sunset", "Link"];
/** What errors of a status tell beside. */
const OF_STATUS: ReadonlyMap<number, readonly string[]> = new Map([
  [401, ["WWW-Authenticate"]],
  [404, DEPRECATED],
  [410, DEPRECATED],
  [412, ["ETag"]],
  [429, ["Retry-After"]],
  [503, ["Retry-After"]],
]);

/** What an operation answers with when it succeeds. */
export interface Success {
  readonly status: number;
  readonly description: string;
  /** Name of the schema of its JSON body. */
  readonly schema?: string;
  readonly headers?: readonly string[];
}

/** The responses of an operation by status. */
export function responses(
  successes: readonly Success[],
  errors: readonly ErrorResponse[],
): Readonly<Record<string, object>> {
  return Object.fromEntries([
    ...successes.map((success) => [success.status, successResponse(success)]),
    ...errors.map((error) => [error.status, { $ref: `#/components/responses/${errorName(error)}` }]),
  ]);
}

/** An error response, which may have one of several codes of one status. */
export interface ErrorResponse {
  readonly status: number;
  readonly codes: readonly ErrorCode[];
}

/** The name that an error response is referred to by. */
export function errorName({ codes }: ErrorResponse): string {
  return codes.join(".");
}

/** An error response as the document holds it. */
export function errorResponse({ status, codes }: ErrorResponse): object {
  const examples = codes.map((code) => [code, { value: { code, message: ERROR_HELP[code].means, status } }]);
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_HELP[code].means} ${ERROR_HELP[code].todo}`).join(
      "\n\n",
    ),
    headers: headers(OF_STATUS.get(status)),
    content: {
      "application/json": {
        schema: { $ref: "#/components/schemas/Error" },
        examples: Object.fromEntries(examples),
      },
    },
  };
}

function successResponse({ description, schema, headers: special }: Success): object {
  const content = schema && { "application/json": { schema: { $ref: `#/components/schemas/${schema}` } } };
  return { description, headers: headers(special), content };
}

function headers(special: readonly string[] = []): object {
  const names = [...ALWAYS, ...special];
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]));
}
