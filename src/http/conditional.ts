import { ifNoneMatch } from "@std/http/etag";
import { createResponse, jsonResponse } from "./response.ts";

/** Headers of a response that a client may keep but has to revalidate before each use. */
export interface Validators {
  readonly etag: string;
  readonly [header: string]: string;
}

/** JSON that clients may keep. Its two responses are made when they are first needed, and sent to many. */
export class Representation {
  readonly #text: string;
  readonly #headers: Validators;
  #full: Response | undefined;
  #notModified: Response | undefined;

  constructor(text: string, validators: Validators) {
    this.#text = text;
    this.#headers = { ...validators, "cache-control": "private, no-cache" };
  }

  /** The representation, or 304 when the client has it already (RFC 9110 section 13.1.2). */
  respondTo(request: Request): Response {
    if (ifNoneMatch(request.headers.get("if-none-match"), this.#headers.etag)) {
      this.#full ??= jsonResponse(this.#text, { headers: this.#headers });
      return this.#full.clone();
    }
    this.#notModified ??= createResponse(null, { status: 304, headers: this.#headers });
    return this.#notModified.clone();
  }
}
