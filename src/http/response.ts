import { gzipSync } from "node:zlib";
import { etagOf, isNotModified } from "./etag.ts";

/** What a response has beside its body. */
export interface ResponseOptions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A response with the headers that all have; those that depend on the request follow. */
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

const SHARED: WeakSet<Response> = new WeakSet();

/**
 * Marks a response as made once for many requests: each is sent a clone, which costs a fraction.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const response = shared(new Response("the same for all"));
 * assertEquals(isShared(response), true);
 * assertEquals(isShared(ownOf(response)), false);
 * assertEquals(await ownOf(response).text(), await ownOf(response).text());
 * ```
 */
export function shared(response: Response): Response {
  SHARED.add(response);
  return response;
}

/** Whether a response is meant for many requests, so that nobody may change or send it. */
export function isShared(response: Response): boolean {
  return SHARED.has(response);
}

/** The response that one request gets: a clone if the response is shared. */
export function ownOf(response: Response): Response {
  return isShared(response) ? response.clone() : response;
}

/** For a response that nobody may keep. */
export const NO_STORE: Readonly<Record<string, string>> = { "cache-control": "no-store" };

/** How a representation is sent. */
export interface RepresentationOptions {
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** etagOf() the text, unless told otherwise. */
  readonly etag?: string;
  /** Whether to send it compressed to those who take that. */
  readonly compress?: boolean;
}

type Respond = (request: Request) => Response;

/**
 * Answers with one encoding of a representation. Its two responses are made when they are first needed, and sent to
 * many: the full one has more headers than those that both have.
 */
function variant(
  body: BodyInit,
  full: Readonly<Record<string, string>>,
  common: { readonly etag: string },
): Respond {
  let response: Response | undefined;
  let notModified: Response | undefined;
  return (request) =>
    isNotModified(request, common.etag)
      ? notModified ??= shared(createResponse(null, { status: 304, headers: common }))
      : response ??= shared(createResponse(body, { headers: { ...full, ...common } }));
}

/** A content that clients may keep, but have to revalidate before each use. */
export class Representation {
  readonly #plain: Respond;
  readonly #compress: (() => Respond) | undefined;
  #gzipped: Respond | undefined;

  constructor(
    text: string,
    { type = "application/json", headers = {}, etag = etagOf(text), compress = false }:
      RepresentationOptions = {},
  ) {
    const vary = compress ? { vary: "Origin, Accept-Encoding" } : {};
    const common = { etag, "cache-control": "private, no-cache", ...headers, ...vary };
    this.#plain = variant(text, { "content-type": type }, common);
    if (!compress) return;
    // Another encoding is another content, with an ETag of its own (RFC 9110 section 8.8.3.3).
    const full = { "content-type": type, "content-encoding": "gzip" };
    const gzipped = { ...common, etag: etag.replace(/"$/, '-gzip"') };
    this.#compress = () => variant(Uint8Array.from(gzipSync(text)), full, gzipped);
  }

  /** The content, or 304 when the client has it already (RFC 9110 section 13.1.2); a shared response. */
  respondTo(request: Request): Response {
    if (this.#compress && ACCEPTS_GZIP.test(request.headers.get("accept-encoding") ?? "")) {
      return (this.#gzipped ??= this.#compress())(request);
    }
    return this.#plain(request);
  }
}

const ACCEPTS_GZIP = /(?:^|,)[ \t]*gzip[ \t]*(?:,|$|;[ \t]*q=(?!0(?:\.0*)?[ \t]*(?:,|$)))/i;
