const ACCEPTABLE = /^[\x21-\x7e]{1,64}$/;

/**
 * A source of request ids: the client's X-Request-Id when it is 1 to 64 visible characters, else one made
 * up. Made-up ids count up behind a random prefix, which costs a fraction of a UUID each.
 *
 * @example
 * ```ts
 * import { assertEquals, assertNotEquals } from "@std/assert";
 *
 * const requestId = createRequestIds();
 * const traced = new Request("http://localhost/", { headers: { "X-Request-Id": "trace-7" } });
 * assertEquals(requestId(traced), "trace-7");
 * const plain = new Request("http://localhost/");
 * assertNotEquals(requestId(plain), requestId(plain));
 * ```
 */
export function createRequestIds(): (request: Request) => string {
  const prefix = crypto.randomUUID().slice(0, 13);
  let count = 0;
  return function requestId({ headers }: Request): string {
    // `has` reads all headers at once; looking for others is then no call into the runtime.
    const given = headers.has("x-request-id") ? headers.get("x-request-id") : null;
    return given !== null && ACCEPTABLE.test(given) ? given : `${prefix}-${++count}`;
  };
}
