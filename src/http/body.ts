import { clearImmediate, setImmediate } from "node:timers";
import { ConcurrencyLimit } from "./concurrency.ts";
import { ApiError } from "./error.ts";
import { exceededBound, type JsonBounds, parseJson } from "./json.ts";

/** Options of {@linkcode readJsonObject}. */
export interface BodyRules {
  /** A media type that is accepted in addition to application/json. */
  readonly otherType?: string;
  /** Whether an empty body counts as an empty object. */
  readonly mayBeEmpty?: boolean;
  /** Maximum size, in bytes. */
  readonly maxBytes: number;
  /** Bounds of the JSON. */
  readonly bounds: JsonBounds;
  /** Maximum wait for the whole body, in ms. */
  readonly timeoutMs: number;
  /**
   * Whether an HTTP/1.1 body may use chunked transfer coding (RFC 9112 section 7.1). Deno buffers trailers of any
   * length after the last chunk.
   */
  readonly chunked: boolean;
}

/** The service's rules for bodies. */
export const BODY_RULES: BodyRules = {
  maxBytes: 64 * 1024,
  bounds: { values: 1_000, levels: 16 },
  timeoutMs: 10_000,
  chunked: false,
};

/** A JSON object as received. Its fields are not validated yet. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** A JSON request body, raw and parsed. */
export interface JsonBody {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly object: JsonObject;
}

/**
 * Reads the body of a request as a JSON object.
 *
 * @throws {ApiError} `invalid_content_type`, `invalid_json`, `invalid_request` (not an object),
 * `length_required`, `overloaded`, `payload_too_large` or `request_timeout`.
 */
export async function readJsonObject(request: Request, rules: BodyRules): Promise<JsonBody> {
  // HTTP/2 allows a body that no header announces (RFC 9113 section 8.1).
  const unannounced = rules.mayBeEmpty && !hasBody(request) ? await readBytes(request, rules) : undefined;
  if (unannounced?.length === 0) return { bytes: unannounced, object: {} };
  requireJson(request, rules);
  requireLength(request.headers, rules);
  const bytes = unannounced ?? await readBytes(request, rules);
  if (bytes.length === 0) throw new ApiError("invalid_json", "The body is empty; send a JSON object.");
  requireBounds(bytes, rules);
  const object = parse(decode(bytes));
  if (!isJsonObject(object)) throw new ApiError("invalid_request", "The body must be a JSON object.");
  return { bytes, object };
}

/**
 * Whether the headers announce a body (RFC 9112 section 6.3). `request.body` cannot tell, because it is never null.
 * Over HTTP/2, which has no Host header, a Content-Type is enough, because a body needs no length there.
 */
function hasBody({ headers }: Request): boolean {
  const length = headers.get("content-length");
  if (length !== null) return Number(length) > 0;
  return headers.has("transfer-encoding") || (headers.has("content-type") && !headers.has("host"));
}

/** Whether a parsed JSON text is an object. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Bodies that did not arrive with their headers. Deno buffers up to 130 kB of each. */
const AWAITED = new ConcurrencyLimit(1_000, "bodies are being read");
/** Maximum length to read with `bytes()`, which is fast, but allocates up to twice the length in advance. */
const MAX_ALLOCATED = 64 * 1024;
const UTF_8 = new TextDecoder("utf-8", { fatal: true });
const JSON_TYPE = "application/json";
const OTHER_CHARSET = /;[ \t]*charset=(?!"?utf-?8"?[ \t]*(?:;|$))/i;

function requireJson(request: Request, { otherType = JSON_TYPE }: BodyRules): void {
  const { headers } = request;
  const contentType = headers.get("content-type") ?? "";
  const type = contentType.split(";", 1)[0]?.trim().toLowerCase();
  if (type !== JSON_TYPE && type !== otherType) {
    const types = [...new Set([JSON_TYPE, otherType])].join(" or ");
    if (contentType === "" && !hasBody(request)) {
      throw new ApiError("invalid_content_type", `The body is empty; send a JSON object, as ${types}.`);
    }
    throw new ApiError("invalid_content_type", `The Content-Type must be ${types}.`);
  }
  if (OTHER_CHARSET.test(contentType)) {
    throw new ApiError("invalid_content_type", "The charset of the Content-Type must be utf-8.");
  }
  const encoding = headers.get("content-encoding");
  if (encoding !== null && !/^identity$/i.test(encoding)) {
    throw new ApiError("invalid_content_type", "The Content-Encoding must be identity, or left out.");
  }
}

function requireLength(headers: Headers, rules: BodyRules): void {
  if (headers.get("transfer-encoding") !== null && !rules.chunked) {
    throw new ApiError("length_required", "The body must come with a Content-Length, not in chunks.");
  }
  if (Number(headers.get("content-length")) > rules.maxBytes) throw tooLarge(rules);
}

/** Limits the number of values, because parsing 64 KiB of small ones takes up to 30 ms. */
function requireBounds(bytes: Uint8Array, { bounds }: BodyRules): void {
  switch (exceededBound(bytes, bounds)) {
    case "values":
      throw new ApiError(
        "invalid_json",
        `The body must have at most ${
          bounds.values.toLocaleString("en")
        } values, objects and arrays counted.`,
      );
    case "levels":
      throw new ApiError("invalid_json", `The body must be nested at most ${bounds.levels} levels deep.`);
  }
}

async function readBytes(request: Request, rules: BodyRules): Promise<Uint8Array<ArrayBuffer>> {
  AWAITED.requireRoom();
  const { promise: inTime, resolve, reject } = Promise.withResolvers<Uint8Array<ArrayBuffer>>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  // Most bodies arrive with their headers. Only the others are counted and need a timer.
  const arming = setImmediate(() => {
    // Other bodies in this turn of the event loop may have taken the remaining room.
    AWAITED.run(() => inTime).catch(reject);
    timer = setTimeout(() => reject(tooLate(rules)), rules.timeoutMs);
  });
  // If the length is known, no body is longer (RFC 9112 section 6.3).
  const length = request.headers.get("content-length");
  let reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;
  try {
    // Deno throws here if the response has already been sent.
    if (length === null || Number(length) > MAX_ALLOCATED) {
      reader = (request.body ?? new Blob().stream()).getReader();
    }
    const reading = reader ? readChunks(reader, rules) : request.bytes();
    reading.then(resolve, reject);
    const bytes = await inTime;
    // Over HTTP/2 a body that the client aborts ends like a complete one.
    if (length !== null && bytes.length !== Number(length)) throw incomplete();
    if (bytes.length > rules.maxBytes) throw tooLarge(rules);
    return bytes;
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw incomplete();
  } finally {
    clearImmediate(arming);
    clearTimeout(timer);
    // Cancels the rest of the body without waiting for the client.
    reader?.cancel().catch(() => {});
  }
}

/** Reads until the body ends or is too large. Chunks are copied, because even a short one uses a buffer of 64 KiB. */
async function readChunks(
  reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>,
  { maxBytes }: BodyRules,
): Promise<Uint8Array<ArrayBuffer>> {
  let bytes = new Uint8Array();
  let length = 0;
  while (length <= maxBytes) {
    const { done, value } = await reader.read();
    if (done) break;
    if (length + value.length > bytes.length) {
      const larger = new Uint8Array(2 * (length + value.length));
      larger.set(bytes);
      bytes = larger;
    }
    bytes.set(value, length);
    length += value.length;
  }
  return bytes.subarray(0, length);
}

function incomplete(): ApiError {
  return new ApiError("invalid_request", "The body ended before it was complete.");
}

function tooLarge({ maxBytes }: BodyRules): ApiError {
  return new ApiError("payload_too_large", `The body must be at most ${maxBytes} bytes.`);
}

function tooLate({ timeoutMs }: BodyRules): ApiError {
  return new ApiError("request_timeout", `The body must arrive within ${timeoutMs / 1000} s.`);
}

function decode(bytes: Uint8Array): string {
  try {
    return UTF_8.decode(bytes);
  } catch {
    throw new ApiError("invalid_json", "The body must be UTF-8.");
  }
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new ApiError("invalid_json", "The body must be valid JSON.");
    throw error;
  }
}
