import { gzipSync } from "node:zlib";
import { etagOf, isNotModified } from "./etag.ts";
import { createResponse, shared } from "./response.ts";

const ENCODER = new TextEncoder();

/** Options of a {@linkcode Representation}. */
export interface RepresentationOptions {
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** By default `etagOf(text)`. */
  readonly etag?: string;
  /** Whether the text is sent compressed. Its ETag says so, too (RFC 9110 section 8.8.3.3). */
  readonly isCompressed?: boolean;
}

/**
 * Text that clients may cache, but must revalidate before each use. Its 200 and 304 responses are created once and
 * shared. Clones of a response use the same bytes, so they need little memory if an HTTP/2 client reads none of them.
 */
export class Representation {
  /** Number of characters. */
  readonly length: number;
  readonly #text: string;
  readonly #type: string;
  readonly #isCompressed: boolean;
  readonly #etag: string;
  readonly #common: Readonly<Record<string, string>>;
  /** Its body is bytes, because Deno would encode a string again for each request. */
  #full: Response | undefined;
  #notModified: Response | undefined;

  constructor(
    text: string,
    { type = "application/json", headers = {}, etag = etagOf(text), isCompressed = false }:
      RepresentationOptions = {},
  ) {
    this.length = text.length;
    this.#text = text;
    this.#type = type;
    this.#isCompressed = isCompressed;
    this.#etag = isCompressed ? etag.replace(/"$/, '-gzip"') : etag;
    this.#common = { etag: this.#etag, "cache-control": "private, no-cache", ...headers };
  }

  /** A shared response: the text, or 304 if `known`, the value of If-None-Match, has the current entity tag. */
  respondTo(known: string | undefined): Response {
    if (isNotModified(known, this.#etag)) {
      return this.#notModified ??= shared(createResponse(null, { status: 304, headers: this.#common }));
    }
    return this.#full ??= shared(this.#createFull());
  }

  #createFull(): Response {
    const headers = { "content-type": this.#type, ...this.#common };
    if (!this.#isCompressed) return createResponse(ENCODER.encode(this.#text), { headers });
    // With less memory, blocks are shorter, and each has a code for its own kind of text.
    const bytes = Uint8Array.from(gzipSync(this.#text, { level: 9, memLevel: 6 }));
    return createResponse(bytes, { headers: { ...headers, "content-encoding": "gzip" } });
  }
}

/** Text that is also kept compressed, for clients that accept that. */
export class CompressedText {
  readonly #plain: Representation;
  readonly #compressed: Representation;

  constructor(text: string, type: string, headers: Readonly<Record<string, string>> = {}) {
    const common = { "cache-control": "no-cache", vary: "Origin, Accept-Encoding", ...headers };
    this.#plain = new Representation(text, { type, headers: common });
    this.#compressed = new Representation(text, { type, headers: common, isCompressed: true });
  }

  /** A shared response: the text, or 304 if the client's copy is current. */
  respondTo(request: Request): Response {
    const representation = acceptsGzip(request) ? this.#compressed : this.#plain;
    return representation.respondTo(request.headers.get("if-none-match") ?? undefined);
  }
}

const ACCEPTS_GZIP = /(?:^|,)[ \t]*gzip[ \t]*(?:,|$|;[ \t]*q=(?!0(?:\.0*)?[ \t]*(?:,|$)))/i;

/** Whether the client accepts a compressed response (RFC 9110 section 12.5.3). */
function acceptsGzip({ headers }: Request): boolean {
  return ACCEPTS_GZIP.test(headers.get("accept-encoding") ?? "");
}
