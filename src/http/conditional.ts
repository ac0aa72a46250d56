import { ifNoneMatch } from "@std/http/etag";
import { createResponse, jsonResponse } from "./response.ts";

/** Headers of a response that a client may keep but has to revalidate before each use. */
export interface Validators {
  readonly etag: string;
  readonly [header: string]: string;
}

/** JSON that clients may keep: made once, sent to many. */
export class Representation {
  readonly #headers: Validators;
  readonly #full: Response;
  #notModified: Response | undefined;

  constructor(text: string, validators: Validators) {
    this.#headers = { ...validators, "cache-control": "private, no-cache" };
    this.#full = jsonResponse(text, { headers: this.#headers });
  }

  /** The representation, or 304 when the client has it already (RFC 9110 section 13.1.2). */
  respondTo(request: Request): Response {
    if (ifNoneMatch(request.headers.get("if-none-match"), this.#headers.etag)) return this.#full.clone();
    this.#notModified ??= createResponse(null, { status: 304, headers: this.#headers });
    return this.#notModified.clone();
  }
}
