import { type ErrorCode, STATUS } from "../../http/error.ts";
import { ACCOUNT_OPERATIONS } from "./account_operations.ts";
import type { Operation } from "./operation.ts";
import { PET_OPERATIONS } from "./pet_operations.ts";
import { errorName, type ErrorResponse, errorResponse, HEADERS, responses } from "./responses.ts";
import { SCHEMAS } from "./schemas.ts";

/** Every operation, in the order in which a reader meets them. */
export const OPERATIONS: readonly Operation[] = [...PET_OPERATIONS, ...ACCOUNT_OPERATIONS];

const BASE_PATH = "/v1";
const ANY: readonly ErrorCode[] = ["invalid_request", "internal_error", "overloaded", "store_unavailable"];
const BY_ACCESS: Readonly<Record<Operation["access"], readonly ErrorCode[]>> = {
  key: [
    "missing_api_key",
    "invalid_api_key",
    "account_suspended",
    "rate_limit_minute",
    "rate_limit_day",
    "key_banned",
  ],
  address: ["rate_limit_minute"],
  public: [],
};
const WITH_BODY: readonly ErrorCode[] = [
  "invalid_json",
  "invalid_content_type",
  "request_timeout",
  "length_required",
  "payload_too_large",
];
const BEYOND = "\n\nThis operation is beyond interface 1.0.0.";

/**
 * The OpenAPI 3.1 document of the service.
 *
 * @param base What its URLs begin with; empty for URLs relative to the document's own.
 */
export function openApiDocument(base: string): object {
  return {
    openapi: "3.1.0",
    info: {
      title: "Animal Store",
      version: "1.0.0",
      summary: "A catalogue of animals, with API keys, plans and exact rate limits.",
      description: DESCRIPTION,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: base + BASE_PATH }],
    security: [{ apiKey: [] }],
    tags: TAGS,
    paths: paths(),
    components: {
      securitySchemes: {
        apiKey: { type: "http", scheme: "bearer", description: "The API key of an account" },
      },
      schemas: SCHEMAS,
      headers: HEADERS,
      responses: Object.fromEntries(
        OPERATIONS.flatMap(errorResponsesOf).map((error) => [errorName(error), errorResponse(error)]),
      ),
    },
  };
}

const TAGS: readonly { name: Operation["tag"]; description: string }[] = [
  { name: "Animals", description: "The catalogue" },
  { name: "Messages", description: "Messages to the store, sent later" },
  { name: "Account", description: "Who calls, and how much they may" },
  { name: "Service", description: "The service itself" },
];

const DESCRIPTION =
  `Requests count in windows of a minute and a day of the UTC clock, whatever their answer; those
that either limit or a ban refuses do not. Every response tells the limits in its headers. A key that is
refused more often within a minute than its minute allows is banned for five minutes, and twice as long for
each further ban within a day, at most 24 hours. Errors have one body, \`Error\`; paths and methods that do
not exist are 404 \`not_found\` and 405 \`method_not_allowed\`. HEAD is answered like GET.`;

/** Paths begin where the server's URL ends. */
function paths(): object {
  const byPath = Map.groupBy(OPERATIONS, ({ path }) => path.replace(BASE_PATH, ""));
  return Object.fromEntries([...byPath].map(([path, operations]) => [
    path,
    Object.fromEntries(
      operations.map((operation) => [operation.method.toLowerCase(), operationObject(operation)]),
    ),
  ]));
}

/** JSON leaves out what is undefined. */
function operationObject(operation: Operation): object {
  const { id, tag, summary, description = `${summary}.`, deprecated, parameters, body } = operation;
  return {
    operationId: id,
    tags: [tag],
    summary,
    description: description + (operation.isExtension ? BEYOND : ""),
    deprecated,
    security: operation.access === "key" ? undefined : [],
    parameters,
    requestBody: body && requestBody(body, operation),
    responses: responses(operation.successes, errorResponsesOf(operation)),
  };
}

/** Every error that an operation may answer with. */
export function errorsOf({ access, body, errors = [] }: Operation): readonly ErrorCode[] {
  return [...new Set([...ANY, ...BY_ACCESS[access], ...(body ? WITH_BODY : []), ...errors])];
}

/** The responses that they come in: those of one status share one. */
export function errorResponsesOf(operation: Operation): ErrorResponse[] {
  const byStatus = Map.groupBy(errorsOf(operation), (code) => STATUS[code]);
  return [...byStatus].map(([status, codes]) => ({ status, codes }));
}

function requestBody(schema: string, { bodyType: otherType, bodyIsOptional }: Operation): object {
  const content = { schema: { $ref: `#/components/schemas/${schema}` } };
  return {
    required: !bodyIsOptional,
    content: { "application/json": content, ...(otherType && { [otherType]: content }) },
  };
}
