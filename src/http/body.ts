import { clearImmediate, setImmediate } from "node:timers";
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

const UTF_8 = new TextDecoder("utf-8", { fatal: true });
const JSON_TYPE = /^application\/json[ \t]*(;|$)/i;

async function readBytes(request: Request, limits: BodyLimits): Promise<Uint8Array<ArrayBuffer>> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  // Most bodies come along with their headers: only the others cost a timer.
  const arming = setImmediate(() => {
    timer = setTimeout(() => reject(tooLate(limits)), limits.timeoutMs);
  });
  try {
    const body = isSized(request, limits) ? request.bytes() : readChunks(request, limits);
    const bytes = await Promise.race([body, late]);
    if (bytes.length > limits.maxBytes) throw tooLarge(limits);
    return bytes;
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError("invalid_request", "The body ended before it was complete.");
  } finally {
    clearImmediate(arming);
    clearTimeout(timer);
  }
}

/** Whether the request says how long its body is: HTTP then ends the body there (RFC 9112 section 6.3). */
function isSized({ headers }: Request, limits: BodyLimits): boolean {
  const length = headers.get("content-length");
  if (Number(length) > limits.maxBytes) throw tooLarge(limits);
  return length !== null && headers.get("transfer-encoding") === null;
}

async function readChunks({ body }: Request, limits: BodyLimits): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) {
    length += chunk.length;
    if (length > limits.maxBytes) throw tooLarge(limits);
    chunks.push(chunk);
  }
  return concat(chunks, length);
}

function tooLarge({ maxBytes }: BodyLimits): ApiError {
  return new ApiError("payload_too_large", `The body must be at most ${maxBytes} bytes.`);
}

/** Says itself that the connection closes, as only later versions of Deno than 2.5 do. */
function tooLate({ timeoutMs }: BodyLimits): ApiError {
  return new ApiError("request_timeout", `The body must arrive within ${timeoutMs / 1000} s.`, {
    connection: "close",
  });
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
    if (error instanceof RangeError) throw new ApiError("invalid_json", "The body is nested too deeply.");
    throw error;
  }
}
