import { ApiError } from "./error.ts";
import { parseJson } from "./json.ts";

/** Bounds on reading a request body. */
export interface BodyLimits {
  /** Largest body, in bytes. */
  readonly maxBytes: number;
  /** Longest wait for the whole body, in ms. */
  readonly timeoutMs: number;
}

/** The bounds the service runs with: 64 KiB, 10 s. */
export const BODY_LIMITS: BodyLimits = { maxBytes: 64 * 1024, timeoutMs: 10_000 };

/** A JSON object as received; its members are still unchecked. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The bytes of a JSON request body and the object they hold. */
export interface JsonBody {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly object: JsonObject;
}

/**
 * Reads a request's body as a JSON object, within bounds.
 *
 * @throws {ApiError} `invalid_content_type`, `invalid_json`, `invalid_request` (not an object),
 * `payload_too_large` or `request_timeout`.
 */
export async function readJsonObject(request: Request, limits: BodyLimits = BODY_LIMITS): Promise<JsonBody> {
  const contentType = request.headers.get("content-type") ?? "";
  if (!JSON_TYPE.test(contentType)) {
    throw new ApiError("invalid_content_type", "The Content-Type must be application/json.");
  }
  const bytes = await readBytes(request, limits);
  const value = parse(decode(bytes));
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ApiError("invalid_request", "The body must be a JSON object.");
  }
  return { bytes, object: { ...value } };
}

const JSON_TYPE = /^application\/json[ \t]*(;|$)/i;

async function readBytes(request: Request, limits: BodyLimits): Promise<Uint8Array<ArrayBuffer>> {
  if (Number(request.headers.get("content-length")) > limits.maxBytes) throw tooLarge(limits);
  if (request.body === null) return new Uint8Array();

  const reader = request.body.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    reader.cancel().catch(() => {});
  }, limits.timeoutMs);
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      length += read.value.length;
      if (length > limits.maxBytes) {
        reader.cancel().catch(() => {});
        throw tooLarge(limits);
      }
      chunks.push(read.value);
    }
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError("invalid_request", "The body ended before it was complete.");
  } finally {
    clearTimeout(timer);
  }
  if (late) {
    throw new ApiError("request_timeout", `The body must arrive within ${limits.timeoutMs / 1000} s.`, {
      connection: "close",
    });
  }
  return concat(chunks, length);
}

function tooLarge({ maxBytes }: BodyLimits): ApiError {
  return new ApiError("payload_too_large", `The body must be at most ${maxBytes} bytes.`);
}

function concat(chunks: readonly Uint8Array[], length: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ApiError("invalid_json", "The body must be UTF-8.");
  }
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) throw new ApiError("invalid_json", "The body must be valid JSON.");
    if (error instanceof RangeError) throw new ApiError("invalid_json", "The body is nested too deeply.");
    throw error;
  }
}
