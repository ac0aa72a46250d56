import { ifNoneMatch } from "@std/http/etag";

/** Headers of a response that a client may keep but has to revalidate before each use. */
export interface Validators {
  readonly etag: string;
  readonly [header: string]: string;
}

/**
 * The representation, or 304 when the client has it already (RFC 9110 section 13.1.2).
 * CORS headers depend on the request's Origin, hence `Vary`.
 */
export function conditionalResponse(request: Request, body: BodyInit, validators: Validators): Response {
  const headers = { ...validators, "cache-control": "private, no-cache", vary: "Origin" };
  if (!ifNoneMatch(request.headers.get("if-none-match"), validators.etag)) {
    return new Response(null, { status: 304, headers });
  }
  return new Response(body, { headers: { "content-type": "application/json", ...headers } });
}
