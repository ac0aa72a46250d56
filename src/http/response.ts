/** What a response has beside its body. */
export interface ResponseOptions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * The longest body that Deno sends in one system call with the head in any case. A longer one takes another, unless it
 * comes in chunks (RFC 9112 section 7.1). Over HTTP/1.0 and HTTP/2, Deno sends its length instead.
 */
const SHORT = 100;

/** A response with the headers that all have; those that depend on the request follow. */
export function createResponse(
  body: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null,
  { status = 200, headers = {} }: ResponseOptions = {},
): Response {
  // The constructor would make headers ready to send, in vain: more of them follow.
  const response = new Response(body, { status });
  const isLong = body !== null && !(body instanceof ReadableStream) && body.length > SHORT;
  if (isLong) response.headers.set("transfer-encoding", "chunked");
  response.headers.set("x-content-type-options", "nosniff");
  response.headers.set("vary", "Origin");
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}

/** A response with JSON text for its body. */
export function jsonResponse(
  text: string,
  { status = 200, headers = {} }: ResponseOptions = {},
): Response {
  return createResponse(text, { status, headers: { "content-type": "application/json", ...headers } });
}

const SHARED: WeakSet<Response> = new WeakSet();

/**
 * Marks a response as made once for many requests: each is sent a clone, which costs a fraction.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const response = shared(new Response("the same for all"));
 * assertEquals(isShared(response), true);
 * assertEquals(isShared(ownOf(response)), false);
 * assertEquals(await ownOf(response).text(), await ownOf(response).text());
 * ```
 */
export function shared(response: Response): Response {
  SHARED.add(response);
  return response;
}

/** Whether a response is shared: it is neither changed nor sent itself. */
export function isShared(response: Response): boolean {
  return SHARED.has(response);
}

/** The response that one request gets: a clone if the response is shared. */
export function ownOf(response: Response): Response {
  return isShared(response) ? response.clone() : response;
}

/** The headers of a response that nobody may store. */
export const NO_STORE: Readonly<Record<string, string>> = { "cache-control": "no-store" };
