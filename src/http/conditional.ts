import { ifNoneMatch } from "@std/http/etag";
import { jsonResponse } from "./json.ts";

/** Headers of a response that a client may keep but has to revalidate before each use. */
export interface Validators {
  readonly etag: string;
  readonly [header: string]: string;
}

/** The JSON representation, or 304 when the client has it already (RFC 9110 section 13.1.2). */
export function conditionalResponse(request: Request, text: string, validators: Validators): Response {
  const headers = { ...validators, "cache-control": "private, no-cache" };
  return ifNoneMatch(request.headers.get("if-none-match"), validators.etag)
    ? jsonResponse(text, { headers })
    : new Response(null, { status: 304, headers });
}
