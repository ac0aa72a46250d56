/** What a response has beside its body. */
export interface ResponseOptions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * A response with the headers that all have. Those that depend on the request follow; so a response that is
 * sent many times is made once, and each request gets a clone, which costs a fraction.
 */
export function createResponse(
  body: string | null,
  { status = 200, headers = {} }: ResponseOptions = {},
): Response {
  // The constructor would make headers ready to send, in vain: more of them follow.
  const response = new Response(body, { status });
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
