import { Buffer } from "node:buffer";
import { constants, crc32, deflateRawSync } from "node:zlib";
import { etagOf, isNotModified } from "./etag.ts";
import { createResponse, shared } from "./response.ts";

const ENCODER = new TextEncoder();

/** How a representation is sent. */
export interface RepresentationOptions {
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** By default etagOf() the text. */
  readonly etag?: string;
}

/**
 * A content that clients may keep, but have to revalidate before each use. Its two responses are made when they are
 * first needed, and sent to many: the full one has more headers than those that both have.
 */
export class Representation {
  readonly #text: string;
  readonly #type: string;
  readonly #etag: string;
  readonly #common: Readonly<Record<string, string>>;
  /** Its body is bytes, for Deno would encode a text anew each time it is sent. */
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

  /** The content, or 304 when the client has it already, as its If-None-Match tells; a shared response. */
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

/** Whether the client takes a compressed response (RFC 9110 section 12.5.3). */
function acceptsGzip({ headers }: Request): boolean {
  return ACCEPTS_GZIP.test(headers.get("accept-encoding") ?? "");
}

/** Stands in the content for what URLs of the service begin with. */
const PLACEHOLDER = "http://base.invalid";
/** The head of a gzip file without a name or a time, of an unknown system (RFC 1952 section 2.3). */
const GZIP_HEAD = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255);
const LAST_BLOCK = deflateRawSync("");

/**
 * A content with URLs of the service in it, which clients may keep, but have to revalidate before each use. All but
 * what those URLs begin with is made and compressed once, so that made-up hosts cost next to nothing, and there is
 * nothing to keep for any host.
 */
export class HostedContent {
  readonly #type: string;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #pieces: readonly string[];
  readonly #etag: string;
  #compressed: readonly Uint8Array[] | undefined;

  /** `render` makes the text for what the URLs begin with. */
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

  /** The content with URLs that begin with `base`, or 304 when the client has it already. */
  respondTo(request: Request, base: string): Response {
    const isCompressed = acceptsGzip(request);
    // Another encoding is another content, with an ETag of its own (RFC 9110 section 8.8.3.3).
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

  /** Blocks of deflated text that end at a byte may be joined (RFC 1951 section 3.2.4). */
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
