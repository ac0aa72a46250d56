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
 * Schemas, the document, and headers have doors of their own: `schema.ts`, `openapi.ts` and `headers.ts`.
 *
 * @example
 * ```ts
 * import { assertEquals, assertMatch } from "@std/assert";
 * import { integer, object, optional, text } from "./schema.ts";
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
 *   const readBody = () => readJsonObject(request);
 *   const call = { request, query, readBody, base: "", now: Date.now(), address: () => "" };
 *   try {
 *     if (matched.kind !== "found") throw new ApiError(ERRORS.not_found, "There is nothing at this path.");
 *     return await matched.endpoint.respond({ ...call, params: matched.params });
 *   } catch (error) {
 *     return errorResponse(error instanceof ApiError ? error : INTERNAL);
 *   }
 * }
 * // Deno.serve(handle);
 *
 * const get = async (path: string) => (await handle(new Request(`http://localhost${path}`))).json();
 * assertEquals(await get("/v1/greetings/Ann"), { words: "Hello Ann! " });
 * assertMatch((await get("/v1/greetings/Ann?times=9")).message, /times must be an integer from 1 to 3/);
 * ```
 *
 * @module
 */
export { readJsonObject } from "./body.ts";
export { Semaphore, tooMany } from "./concurrency.ts";
export {
  ApiError,
  codeOf,
  type ErrorKind,
  errorResponse,
  ERRORS,
  FIX,
  INTERNAL,
  invalidRequest,
  WAIT,
  withCodes,
} from "./error.ts";
export {
  type Access,
  apiErrorOf,
  type Call,
  type DeclaredOperation,
  type Operation,
  operation,
  type Scope,
  type Scoped,
  type Tag,
} from "./operation.ts";
export { CompressedText, Representation } from "./representation.ts";
export { createResponse, jsonResponse, NO_STORE, ownOf, shared, valueResponse } from "./response.ts";
export { allowOf, createMatcher, type Match } from "./router.ts";
export { ANY_ADDRESS, originOf, Server } from "./server.ts";
