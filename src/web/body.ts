import { monotonicNow, msSince, PAST } from "../base/mod.ts";
import { setImmediate } from "node:timers";
import { ConcurrencyLimit } from "./concurrency.ts";
import { ApiError, ERRORS, invalidRequest } from "./error.ts";
import { exceededBound, isJsonObject, type JsonBounds, type JsonObject, parseJson } from "./json.ts";
import { wasSentTwice } from "./request.ts";

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
   * Maximum wait for each part of a chunked HTTP/1.1 body (RFC 9112 section 7.1), in ms. After the last chunk, Deno
   * buffers trailers of any length, unseen, until the reading is cancelled.
   */
  readonly stallMs: number;
}

/** The rules that hold unless an operation has others. */
export const BODY_RULES: BodyRules = {
  maxBytes: 64 * 1024,
  bounds: { values: 1_000, levels: 16 },
  timeoutMs: 10_000,
  stallMs: 2_000,
};

/** A JSON request body, raw and parsed. */
export interface JsonBody {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly object: JsonObject;
}

/**
 * Reads the body of a request as a JSON object. `sender` is who sends it; empty if that is unknown. Rules that are not
 * given are the usual ones.
 *
 * @throws {ApiError} `invalid_content_type`, `invalid_json`, `invalid_request` (not an object, badly framed or
 * incomplete), `overloaded`, `payload_too_large` or `request_timeout`.
 */
export async function readJsonObject(
  request: Request,
  ownRules: Partial<BodyRules> = {},
  sender = "",
): Promise<JsonBody> {
  const rules = { ...BODY_RULES, ...ownRules };
  const length = lengthOf(request.headers, rules);
  const isChunked = length === undefined && request.headers.has("transfer-encoding");
  const read = () => readBytes(request, { length, isChunked, sender }, rules);
  // A chunked body may be empty, and HTTP/2 allows a body that no header announces (RFC 9113 section 8.1).
  const isUncertain = rules.mayBeEmpty && (isChunked || !hasBody(request));
  const early = isUncertain ? await read() : undefined;
  if (early?.length === 0) return { bytes: early, object: {} };
  requireJson(request, rules);
  const bytes = early ?? await read();
  if (bytes.length === 0) throw new ApiError(ERRORS.invalid_json, "The body is empty; send a JSON object.");
  requireBounds(bytes, rules);
  const object = parse(bytes);
  if (!isJsonObject(object)) throw invalidRequest("The body must be a JSON object.");
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

/** Maximum numbers of bodies that are awaited at a time. */
export const PLACES = {
  all: 1_000,
  /** For all unknown senders together. */
  anonymous: 500,
  /** For one sender, while fewer than `plenty` places are free. */
  perSender: 50,
  plenty: 500,
} as const;
/** Bodies that did not arrive with their headers, by sender. Deno holds 280 kB for each until its connection ends. */
const AWAITED = new ConcurrencyLimit(PLACES.all, "bodies are being read", (sender, free) => {
  if (sender === "") return PLACES.anonymous;
  return free < PLACES.plenty ? PLACES.perSender : PLACES.all;
});
/** A body may have this many chunks, and one more for each 16 bytes, because each takes about 8 µs. */
const MAX_SMALL_CHUNKS = 1_000;
const CHUNK_BYTES = 16;
/** Maximum length to read with `bytes()`, which is fast, but allocates up to twice the length in advance. */
const MAX_ALLOCATED = 64 * 1024;
const INCOMPLETE = invalidRequest("The body ended before it was complete.");
const UTF_8 = new TextDecoder("utf-8", { fatal: true });
const JSON_TYPE = "application/json";
/** A media type; any commas are in quotes (RFC 9110 section 8.3.1). */
const MEDIA_TYPE = /^([^\s;,/]+\/[^\s;,/]+)[ \t]*(?:;(?:[^",]|"(?:[^"\\]|\\.)*")*)?$/;
const OTHER_CHARSET = /;[ \t]*charset=(?!"?utf-?8"?[ \t]*(?:;|$))/i;

function requireJson(request: Request, rules: BodyRules): void {
  const { headers } = request;
  const contentType = headers.get("content-type") ?? "";
  if (contentType !== JSON_TYPE) requireJsonType(contentType, request, rules); // Most clients send just that.
  const encoding = headers.get("content-encoding");
  if (encoding !== null && !/^identity$/i.test(encoding)) {
    throw refusal("The Content-Encoding must be identity, or left out.");
  }
}

function requireJsonType(contentType: string, request: Request, { otherType = JSON_TYPE }: BodyRules): void {
  if (wasSentTwice(contentType, (type) => MEDIA_TYPE.test(type))) {
    throw refusal("The Content-Type was sent twice.");
  }
  const type = MEDIA_TYPE.exec(contentType)?.[1]?.toLowerCase();
  if (type !== JSON_TYPE && type !== otherType) {
    const types = [...new Set([JSON_TYPE, otherType])].join(" or ");
    const isEmpty = contentType === "" && !hasBody(request);
    throw refusal(
      isEmpty ? `The body is empty; send a JSON object, as ${types}.` : `The Content-Type must be ${types}.`,
    );
  }
  if (OTHER_CHARSET.test(contentType)) throw refusal("The charset of the Content-Type must be utf-8.");
}

function refusal(message: string): ApiError {
  return new ApiError(ERRORS.invalid_content_type, message);
}

/**
 * The length of a body in bytes (RFC 9112 section 6); undefined if it is not known.
 *
 * @throws {ApiError} `invalid_request` or `payload_too_large`.
 */
function lengthOf(headers: Headers, rules: BodyRules): number | undefined {
  const length = headers.get("content-length");
  if (length === null) {
    const coding = headers.get("transfer-encoding") ?? "chunked";
    if (coding.toLowerCase() === "chunked") return undefined;
    throw invalidRequest("The Transfer-Encoding must be chunked, or left out.", "Transfer-Encoding");
  }
  if (!isNumber(length)) {
    const fault = wasSentTwice(length, isNumber) ? "was sent twice" : "must be a number of bytes";
    throw invalidRequest(`The Content-Length ${fault}.`, "Content-Length");
  }
  if (Number(length) > rules.maxBytes) throw tooLarge(rules);
  return Number(length);
}

function isNumber(text: string): boolean {
  return /^\d+$/.test(text);
}

/** Limits the number of values, because parsing 64 KiB of small ones takes up to 30 ms. */
function requireBounds(bytes: Uint8Array, { bounds }: BodyRules): void {
  const bound = exceededBound(bytes, bounds);
  if (bound === undefined) return;
  const rule = bound === "values"
    ? `have at most ${bounds.values.toLocaleString("en")} values, objects and arrays counted`
    : `be nested at most ${bounds.levels} levels deep`;
  throw new ApiError(ERRORS.invalid_json, `The body must ${rule}.`);
}

/** How a body arrives. Over HTTP/2 it may have no length without being chunked. */
interface Arriving {
  readonly length: number | undefined;
  readonly isChunked: boolean;
  readonly sender: string;
}

async function readBytes(
  request: Request,
  { length, isChunked, sender }: Arriving,
  rules: BodyRules,
): Promise<Uint8Array<ArrayBuffer>> {
  AWAITED.requireRoom(sender);
  const { promise: inTime, resolve, reject } = Promise.withResolvers<Uint8Array<ArrayBuffer>>();
  const deadline = new BodyDeadline({ ...rules, ...(!isChunked && { stallMs: Infinity }) }, reject);
  // Most bodies arrive with their headers. Only the others are counted and need a timer.
  deadline.afterTurn(() => {
    // Other bodies in this turn of the event loop may have taken the remaining room.
    AWAITED.run(() => inTime, sender).catch(reject);
    deadline.start();
  });
  let reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined;
  try {
    // Deno throws here if the response has already been sent.
    if (length === undefined || length > MAX_ALLOCATED) {
      reader = (request.body ?? new Blob().stream()).getReader();
    }
    const reading = reader ? readChunks(reader, rules, deadline) : request.bytes();
    reading.then(resolve, reject);
    const bytes = await inTime;
    // Over HTTP/2 a body that the client aborts ends like a complete one.
    if (length !== undefined && bytes.length !== length) throw INCOMPLETE;
    if (bytes.length > rules.maxBytes) throw tooLarge(rules);
    return bytes;
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw INCOMPLETE;
  } finally {
    deadline.end();
    // Cancels the rest of the body without waiting for the client.
    reader?.cancel().catch(() => {});
  }
}

/** What to do after this turn of the event loop. */
let thisTurn: (() => void)[] = [];

function endTurn(): void {
  const callbacks = thisTurn;
  thisTurn = [];
  for (const callback of callbacks) callback();
}

/** The time by which a body must arrive. There is one timer, which the parts of a chunked body do not restart. */
class BodyDeadline {
  readonly #rules: BodyRules;
  readonly #reject: (error: ApiError) => void;
  #begun = PAST;
  #lastPart = PAST;
  #hasEnded = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** `reject` is called if the body is late. */
  constructor(rules: BodyRules, reject: (error: ApiError) => void) {
    this.#rules = rules;
    this.#reject = reject;
  }

  /** Calls back after one turn of the event loop, unless it has ended. All bodies of a turn share one immediate. */
  afterTurn(callback: () => void): void {
    if (thisTurn.push(() => this.#hasEnded || callback()) === 1) setImmediate(endTurn);
  }

  start(): void {
    this.#begun = this.#lastPart = monotonicNow();
    this.#check();
  }

  /** A part of the body has arrived: the next one may take as long again. */
  partArrived(): void {
    this.#lastPart = monotonicNow();
  }

  /** Rejects the body if it is late. Otherwise checks again when it would be. */
  #check(): void {
    const { timeoutMs, stallMs } = this.#rules;
    const left = timeoutMs - msSince(this.#begun);
    const leftOfPause = stallMs - msSince(this.#lastPart);
    if (left <= 0) return this.#refuse(`The body must arrive within ${timeoutMs / 1_000} s.`);
    if (leftOfPause <= 0) return this.#refuse(`A chunked body must not pause for ${stallMs / 1_000} s.`);
    // If the event loop was busy, the timer fires late. One more turn reads the parts that have arrived in the meantime.
    this.#timer = setTimeout(() => this.afterTurn(() => this.#check()), Math.min(left, leftOfPause));
  }

  #refuse(message: string): void {
    this.#reject(new ApiError(ERRORS.request_timeout, message));
  }

  end(): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
  }
}

/** Reads until the body ends or is too large. Chunks are copied, because even a short one uses a buffer of 64 KiB. */
async function readChunks(
  reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>,
  { maxBytes }: BodyRules,
  deadline: BodyDeadline,
): Promise<Uint8Array<ArrayBuffer>> {
  let bytes = new Uint8Array();
  let length = 0;
  for (let chunks = 1; length <= maxBytes; chunks++) {
    const { done, value } = await reader.read();
    if (done) break;
    deadline.partArrived();
    if (length + value.length > bytes.length) {
      const larger = new Uint8Array(2 * (length + value.length));
      larger.set(bytes);
      bytes = larger;
    }
    bytes.set(value, length);
    length += value.length;
    if (chunks > MAX_SMALL_CHUNKS + length / CHUNK_BYTES) {
      const most = MAX_SMALL_CHUNKS.toLocaleString("en");
      throw invalidRequest(
        `The body must come in at most ${most} chunks, and one more for each ${CHUNK_BYTES} bytes.`,
      );
    }
  }
  return bytes.subarray(0, length);
}

function tooLarge({ maxBytes }: BodyRules): ApiError {
  return new ApiError(ERRORS.payload_too_large, `The body must be at most ${maxBytes} bytes.`);
}

function parse(bytes: Uint8Array): unknown {
  try {
    return parseJson(UTF_8.decode(bytes));
  } catch (error) {
    if (error instanceof TypeError) throw new ApiError(ERRORS.invalid_json, "The body must be UTF-8.");
    if (!(error instanceof SyntaxError)) throw error;
    throw new ApiError(
      ERRORS.invalid_json,
      `The body must be valid JSON. Its first fault is at ${error.message}.`,
    );
  }
}
