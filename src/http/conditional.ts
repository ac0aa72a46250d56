import { ifNoneMatch } from "@std/http/etag";

/** Headers of a response that a client may keep but has to revalidate before each use. */
export interface Validators {
  readonly etag: string;
  readonly [header: string]: string;
}

/** The representation, or 304 when the client has it already (RFC 9110 section 13.1.2). */
export function conditionalResponse(request: Request, body: BodyInit, validators: Validators): Response {
  const fresh = ifNoneMatch(request.headers.get("if-none-match"), validators.etag);
  const response = fresh ? new Response(body) : new Response(null, { status: 304 });
  const { headers } = response;
  if (fresh) headers.set("content-type", "application/json");
  for (const [name, value] of Object.entries(validators)) headers.set(name, value);
  headers.set("cache-control", "private, no-cache");
  return response;
}
