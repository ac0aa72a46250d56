import { stringifyJson } from "./json.ts";

/** Options of {@linkcode createResponse}. */
export interface ResponseOptions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the request is a GET, whose response a cache may keep. By default, it is if the status is 200 or 304. */
  readonly isCacheable?: boolean;
}

/**
 * Maximum length of a body that Deno always sends in one system call with the head. A longer body needs a second call,
 * unless it is chunked (RFC 9112 section 7.1). Over HTTP/1.0 and HTTP/2, Deno sends the length instead.
 */
const SHORT = 100;

/** A `Cache-Control` with which no shared cache keeps a response. */
const UNSHARED = /^(?:private|no-store)\b/;

/**
 * Creates a response with the headers that all responses have. Headers that depend on the request are added later. The
 * response varies by origin if a shared cache may keep it: pages of any origin could then get the response to another.
 */
export function createResponse(
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null,
  { status = 200, headers = {}, isCacheable = status === 200 || status === 304 }: ResponseOptions = {},
): Response {
  // Passing headers to the constructor would be slower, because more are added later.
  const response = new Response(body, { status });
  const isLong = body !== null && !(body instanceof ReadableStream) && body.length > SHORT;
  if (isLong) response.headers.set("transfer-encoding", "chunked");
  response.headers.set("x-content-type-options", "nosniff");
  if (isCacheable && !UNSHARED.test(headers["cache-control"] ?? "")) response.headers.set("vary", "Origin");
  for (const name of Object.keys(headers)) response.headers.set(name, headers[name] ?? "");
  return response;
}

/** Creates a response with a body of JSON text. */
export function jsonResponse(
  text: string,
  { headers = {}, ...options }: ResponseOptions = {},
): Response {
  return createResponse(text, { ...options, headers: { "content-type": "application/json", ...headers } });
}

/** Creates a response with a value as JSON, which must not be cached. */
export function valueResponse<Value>(
  value: Value,
  { headers = {}, ...options }: ResponseOptions = {},
): Response {
  return jsonResponse(stringifyJson(value), { ...options, headers: { ...NO_STORE, ...headers } });
}

const SHARED: WeakSet<Response> = new WeakSet();

/**
 * Marks a response as shared by many requests. Each gets a clone, which is cheaper than a new response.
 *
 * @example
 * ```ts
 * import { assert, assertEquals } from "@std/assert";
 *
 * const response = shared(new Response("the same for all"));
 * assert(ownOf(response) !== response);
 * assertEquals(await ownOf(response).text(), await ownOf(response).text());
 * ```
 */
export function shared(response: Response): Response {
  SHARED.add(response);
  return response;
}

/** The response for one request: a clone if the response is shared, because that must not be changed or sent. */
export function ownOf(response: Response): Response {
  return SHARED.has(response) ? response.clone() : response;
}

/** Headers of a response that must not be cached. */
export const NO_STORE: Readonly<Record<string, string>> = { "cache-control": "no-store" };
