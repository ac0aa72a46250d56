import { Buffer } from "node:buffer";
import { constants, crc32, deflateRawSync } from "node:zlib";
import { etagOf, isNotModified } from "./etag.ts";
import { createResponse, shared } from "./response.ts";

const ENCODER = new TextEncoder();

/** Options of a {@linkcode Representation}. */
export interface RepresentationOptions {
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** By default `etagOf(text)`. */
  readonly etag?: string;
}

/**
 * Text that clients may cache, but must revalidate before each use. Its 200 and 304 responses are created once and
 * shared.
 */
export class Representation {
  readonly #text: string;
  readonly #type: string;
  readonly #etag: string;
  readonly #common: Readonly<Record<string, string>>;
  /** Its body is bytes, because Deno would encode a string again for each request. */
  #full: Response | undefined;
  #notModified: Response | undefined;

  constructor(
    text: string,
    { type = "application/json", headers = {}, etag = etagOf(text) }: RepresentationOptions = {},
  ) {
    this.#text = text;
    this.#type = type;
    this.#etag = etag;
    this.#common = { etag, "cache-control": "private, no-cache", ...headers };
  }

  /** A shared response: the text, or 304 if `known`, the value of If-None-Match, has the current entity tag. */
  respondTo(known: string | undefined): Response {
    if (isNotModified(known, this.#etag)) {
      return this.#notModified ??= shared(createResponse(null, { status: 304, headers: this.#common }));
    }
    return this.#full ??= shared(
      createResponse(ENCODER.encode(this.#text), {
        headers: { "content-type": this.#type, ...this.#common },
      }),
    );
  }
}

const ACCEPTS_GZIP = /(?:^|,)[ \t]*gzip[ \t]*(?:,|$|;[ \t]*q=(?!0(?:\.0*)?[ \t]*(?:,|$)))/i;

/** Whether the client accepts a compressed response (RFC 9110 section 12.5.3). */
function acceptsGzip({ headers }: Request): boolean {
  return ACCEPTS_GZIP.test(headers.get("accept-encoding") ?? "");
}

/** Placeholder for the base of the service's URLs. */
const PLACEHOLDER = "http://base.invalid";
/** A gzip header without file name, time and operating system (RFC 1952 section 2.3). */
const GZIP_HEAD = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255);
const LAST_BLOCK = deflateRawSync("");

/**
 * Text that contains URLs of the service. Clients may cache it, but must revalidate it before each use. The text around
 * the base of those URLs is compressed once. So a request for another host costs little, and leaves nothing in memory.
 */
export class HostedContent {
  readonly #type: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #pieces: readonly string[];
  readonly #etag: string;
  #compressed: readonly Uint8Array[] | undefined;

  /** `render` returns the text for a base URL. */
  constructor(
    render: (base: string) => string,
    type: string,
    headers: Readonly<Record<string, string>> = {},
  ) {
    const text = render(PLACEHOLDER);
    this.#type = type;
    this.#headers = { "cache-control": "no-cache", vary: "Origin, Accept-Encoding", ...headers };
    this.#pieces = text.split(PLACEHOLDER);
    this.#etag = etagOf(text);
  }

  /** The text with URLs that begin with `base`, or 304 if the client's copy is current. */
  respondTo(request: Request, base: string): Response {
    const isCompressed = acceptsGzip(request);
    // Each content coding has its own ETag (RFC 9110 section 8.8.3.3).
    const etag = etagOf(this.#etag + base).replace(/"$/, isCompressed ? '-gzip"' : '"');
    const common = { ...this.#headers, etag };
    if (isNotModified(request.headers.get("if-none-match") ?? undefined, etag)) {
      return createResponse(null, { status: 304, headers: common });
    }
    const headers = { ...common, "content-type": this.#type };
    const text = this.#pieces.join(base);
    if (!isCompressed) return createResponse(text, { headers });
    return createResponse(this.#gzip(text, base), { headers: { ...headers, "content-encoding": "gzip" } });
  }

  /** Joins deflated blocks, which is possible because each ends at a byte boundary (RFC 1951 section 3.2.4). */
  #gzip(text: string, base: string): Uint8Array<ArrayBuffer> {
    this.#compressed ??= this.#pieces.map(deflate);
    const between = deflate(base);
    const blocks = this.#compressed.flatMap((piece, index) => index === 0 ? [piece] : [between, piece]);
    const bytes = Buffer.from(text);
    const tail = Buffer.alloc(8);
    tail.writeUInt32LE(crc32(bytes), 0);
    tail.writeUInt32LE(bytes.length, 4);
    return Uint8Array.from(Buffer.concat([GZIP_HEAD, ...blocks, LAST_BLOCK, tail]));
  }
}

function deflate(text: string): Uint8Array {
  return deflateRawSync(text, { finishFlush: constants.Z_SYNC_FLUSH });
}
