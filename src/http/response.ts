import { createHash } from "node:crypto";
import { ifNoneMatch } from "@std/http/etag";

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
  body: BodyInit | null,
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

/** For a response that nobody may keep. */
export const NO_STORE: Readonly<Record<string, string>> = { "cache-control": "no-store" };

/**
 * The strong entity tag of a content: a hash of it, so one tag never names two contents (RFC 9110 section
 * 8.8.3).
 */
export function etagOf(text: string): string {
  return `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`;
}

/** How a representation is sent. */
export interface RepresentationOptions {
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * A content that clients may keep, but have to revalidate before each use. Its two responses are made when they
 * are first needed, and sent to many.
 */
export class Representation {
  readonly #text: string;
  readonly #type: string;
  readonly #etag: string;
  readonly #headers: Readonly<Record<string, string>>;
  #full: Response | undefined;
  #notModified: Response | undefined;

  constructor(text: string, { type = "application/json", headers = {} }: RepresentationOptions = {}) {
    this.#text = text;
    this.#type = type;
    this.#etag = etagOf(text);
    this.#headers = { etag: this.#etag, "cache-control": "private, no-cache", ...headers };
  }

  /** The content, or 304 when the client has it already (RFC 9110 section 13.1.2). */
  respondTo(request: Request): Response {
    const known = request.headers.get("if-none-match");
    if (known === null || ifNoneMatch(known, this.#etag)) {
      this.#full ??= createResponse(this.#text, {
        headers: { "content-type": this.#type, ...this.#headers },
      });
      return this.#full.clone();
    }
    this.#notModified ??= createResponse(null, { status: 304, headers: this.#headers });
    return this.#notModified.clone();
  }
}
