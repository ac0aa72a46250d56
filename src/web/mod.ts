/**
 * Operations on `Deno.serve`: each is declared once, with its route.
 *
 * `operation()` takes method, path, parameters, headers, body, responses and errors, and a handler whose input has the
 * types of its schemas. From the declaration follow the parser, which names every fault of a request at once; the
 * OpenAPI document; and the types. What it promises:
 *
 * - A handler sees only valid input. Integers of 64 bits keep every digit.
 * - A client that sends slowly, too much, or without end holds a bounded amount of memory for a bounded time.
 * - Every error has the same body, except a 400 of Deno itself, such as for too many headers. An exception becomes a bare
 *   500.
 *
 * What it costs: a few microseconds for each request, most of them for its headers. It knows no store. A service extends
 * `Call` with what its handlers need.
 *
 * @example
 * ```ts
 * import { assertEquals, assertMatch } from "@std/assert";
 *
 * const greet = operation({
 *   id: "greet",
 *   method: "GET",
 *   path: "/v1/greetings/{name}",
 *   access: { name: "everyone", hasCredential: false, isStrict: true, errors: [] },
 *   tag: { name: "Greetings", description: "Friendly words" },
 *   summary: "Greet somebody",
 *   params: { name: text({ max: 20 }) },
 *   query: { times: optional(integer(1, 3), 1) },
 *   answers: { 200: { description: "The greeting", body: object({ words: text() }) } },
 * }, ({ params, query }) => jsonResponse(JSON.stringify({ words: `Hello ${params.name}! `.repeat(query.times) })));
 * const match = createMatcher([greet]);
 *
 * async function handle(request: Request): Promise<Response> {
 *   const { pathname, search: query } = new URL(request.url);
 *   const matched = match(request.method, pathname);
 *   const readBody = () => readJsonObject(request, BODY_RULES, "");
 *   const call = { request, query, readBody, base: "", now: Date.now(), address: () => "" };
 *   try {
 *     if (matched.kind !== "found") throw new ApiError(ERRORS.not_found, "There is nothing at this path.");
 *     return await matched.endpoint.answer({ ...call, params: matched.params });
 *   } catch (error) {
 *     return errorResponse(error instanceof ApiError ? error : INTERNAL);
 *   }
 * }
 * // Deno.serve(handle);
 *
 * const get = async (path: string) => (await handle(new Request(`http://localhost${path}`))).json();
 * assertEquals(await get("/v1/greetings/Ann"), { words: "Hello Ann! " });
 * assertMatch((await get("/v1/greetings/Ann?times=9")).message, /times must be an integer from 1 to 3/);
 *
 * const texts = { title: "Greetings", summary: "", description: "", credential: "" };
 * const document = openApiDocument([greet], "", { path: "/v1", ...texts, errors: [], error: ERRORS.not_found });
 * assertMatch(JSON.stringify(document), /"\/greetings\/\{name\}":\{"get":\{"operationId":"greet"/);
 * ```
 *
 * @module
 */
export {
  BODY_RULES,
  type BodyRules,
  isJsonObject,
  type JsonBody,
  type JsonObject,
  readJsonObject,
} from "./body.ts";
export { ConcurrencyLimit } from "./concurrency.ts";
export { setCorsHeaders } from "./cors.ts";
export {
  type Deprecation,
  deprecationHeaders,
  DEPRECATIONS_PATH,
  deprecationsText,
  inWords,
  isGone,
} from "./deprecation.ts";
export {
  ApiError,
  codeOf,
  type ErrorKind,
  errorResponse,
  ERRORS,
  FIX,
  INTERNAL,
  OVERLOADED,
  WAIT,
  withCodes,
} from "./error.ts";
export { etagOf, type Preconditions, quickEtagOf, requirePreconditions } from "./etag.ts";
export {
  entityTags,
  IDEMPOTENCY_KEY,
  IF_NONE_MATCH,
  NO_IDEMPOTENCY_KEY,
  NOT_MODIFIED,
  REPLAY_HOURS,
} from "./headers.ts";
export { asExtension, INTERFACE, ORIGINAL } from "./interface.ts";
export { parseJson, parseStoredJson, stringifyJson } from "./json.ts";
export { BIDI_CONTROLS, nameText } from "./name.ts";
export {
  BASE_PATH,
  bodyTypeOf,
  conflictIn,
  COUNT,
  errorsOf,
  errorsOfAll,
  type InputMember,
  inputsOf,
  type Interface,
  isDocumented,
  MAX_ID_LENGTH,
  openApiDocument,
} from "./openapi.ts";
export {
  type Access,
  apiErrorOf,
  type Call,
  type DeclaredOperation,
  type Operation,
  operation,
  SERVICE,
  type Tag,
} from "./operation.ts";
export { CompressedText, Representation } from "./representation.ts";
export { API_KEY_LIKE, bearerToken, clientAddress, wasSentTwice } from "./request.ts";
export { createResponse, isShared, jsonResponse, NO_STORE, ownOf, shared } from "./response.ts";
export { allowOf, createMatcher, type Endpoint, type Match } from "./router.ts";
export {
  answer,
  boolean,
  date,
  faultsIn,
  int64,
  integer,
  Invalid,
  isRemovable,
  isValid,
  list,
  type Members,
  mergePatch,
  named,
  nullable,
  object,
  oneOf,
  type Optional,
  optional,
  type Parsed,
  type ParsedMembers,
  partial,
  readOnly,
  resolved,
  type Schema,
  type SentMembers,
  text,
  timestamp,
  withoutDefault,
} from "./schema.ts";
export { ANY_ADDRESS, originOf, Server, type ServerHandler, type ServerOptions } from "./server.ts";
export { shownName } from "./unknown_names.ts";
