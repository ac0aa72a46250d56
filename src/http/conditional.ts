import { ifNoneMatch } from "@std/http/etag";
import { createResponse, jsonResponse } from "./response.ts";

/** Headers of a response that a client may keep but has to revalidate before each use. */
export interface Validators {
  readonly etag: string;
  readonly [header: string]: string;
}

/** JSON that clients may keep: made once, sent to many. */
export class Representation {
  readonly #etag: string;
  readonly #full: Response;
  readonly #notModified: Response;

  constructor(text: string, validators: Validators) {
    const headers = { ...validators, "cache-control": "private, no-cache" };
    this.#etag = validators.etag;
    this.#full = jsonResponse(text, { headers });
    this.#notModified = createResponse(null, { status: 304, headers });
  }

  /** The representation, or 304 when the client has it already (RFC 9110 section 13.1.2). */
  respondTo(request: Request): Response {
    const isNew = ifNoneMatch(request.headers.get("if-none-match"), this.#etag);
    return (isNew ? this.#full : this.#notModified).clone();
  }
}
