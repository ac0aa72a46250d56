const ACCEPTABLE = /^[\x21-\x7e]{1,64}$/;

/** The client's X-Request-Id when it is 1 to 64 visible characters, else one made up. */
export function requestId(request: Request): string {
  const given = request.headers.get("x-request-id");
  return given !== null && ACCEPTABLE.test(given) ? given : crypto.randomUUID();
}
