import { setImmediate } from "node:timers/promises";
import { assertEquals, assertRejects } from "@std/assert";
import { BODY_RULES, type BodyRules, readJsonObject } from "../../src/web/body.ts";
import { ApiError } from "../../src/web/error.ts";
import { pause } from "../../src/base/time.ts";
import { VirtualTime } from "../support/time.ts";

const SHORT: BodyRules = { ...BODY_RULES, maxBytes: 10, timeoutMs: 60_000 };
const MERGE_PATCH = "application/merge-patch+json";
const HTTP_1 = { host: "localhost" };
const TYPED = { "content-type": "application/json" };
const CHUNKED = { "transfer-encoding": "chunked" };

/** Reads a request body, JSON by default. */
function read(body: BodyInit | null, headers: Record<string, string> = {}, rules = BODY_RULES) {
  const init = { method: "POST", body, headers: { ...TYPED, ...headers } };
  return readJsonObject(new Request("http://localhost/", init), rules);
}

function encode(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(text);
}

async function assertRefused(
  reading: Promise<unknown>,
  code: string,
  message: string,
  headers: Record<string, string> = {},
): Promise<void> {
  const error = await assertRejects(() => reading, ApiError, message);
  assertEquals([error.kind.code, error.headers], [code, headers]);
}

/** A body whose parts are what `next` returns, until that is undefined. */
function sourceOf(next: () => string | undefined | Promise<string | undefined>) {
  const source = { pulls: 0, cancelled: false };
  const pull = async (controller: ReadableStreamDefaultController) => {
    source.pulls++;
    const part = await next();
    if (part === undefined) controller.close();
    else controller.enqueue(encode(part));
  };
  const cancel = () => void (source.cancelled = true);
  return Object.assign(source, { stream: new ReadableStream({ pull, cancel }, { highWaterMark: 0 }) });
}

/** An endless body of spaces, one byte per pull. */
function endlessBody() {
  return sourceOf(() => " ");
}

Deno.test("readJsonObject() leaves no unhandled rejection if the body can no longer be read", async () => {
  await using time = new VirtualTime();
  const failures: unknown[] = [];
  const note = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    failures.push(event.reason);
  };
  globalThis.addEventListener("unhandledrejection", note);
  const request = new Request("http://localhost/", {
    method: "POST",
    headers: TYPED,
    body: endlessBody().stream,
  });
  const lock = request.body?.getReader();

  await assertRefused(readJsonObject(request, BODY_RULES), "invalid_request", "ended before");
  await time.advance(20_000);

  assertEquals(failures, []);
  globalThis.removeEventListener("unhandledrejection", note);
  lock?.releaseLock();
});

Deno.test.each<Record<string, string>>([
  TYPED,
  { "content-type": "APPLICATION/JSON" },
  { "content-type": "application/json; charset=utf-8" },
  { "content-type": "application/json ;v=1;\tCharset=UTF8 ; v=2" },
  { "content-type": 'application/json;charset="utf-8"' },
  { "content-encoding": "Identity" },
  { "transfer-encoding": "Chunked" },
])("readJsonObject() accepts JSON with the headers %j", async (headers) => {
  const { bytes, object } = await read('{"a":1}', headers);

  assertEquals(object, { a: 1 });
  assertEquals(bytes, encode('{"a":1}'));
});

const TYPE = "The Content-Type must be application/json.";
const TYPE_TWICE = "The Content-Type was sent twice.";
const CHARSET = "The charset of the Content-Type must be utf-8.";
const ENCODING = "The Content-Encoding must be identity, or left out.";
const LENGTH = "The Content-Length must be a number of bytes.";
const LENGTH_TWICE = "The Content-Length was sent twice.";
const CODING = "The Transfer-Encoding must be chunked, or left out.";

Deno.test.each([
  ["content-type", "", TYPE],
  ["content-type", "text/json", TYPE],
  ["content-type", "application/jsonp", TYPE],
  ["content-type", MERGE_PATCH, TYPE],
  ["content-type", "x application/json", TYPE],
  ["content-type", 'text/plain; x="a, b/c"', TYPE],
  ["content-type", "application/json, application/json", TYPE_TWICE],
  ["content-type", "application/json; charset=utf-8, text/csv", TYPE_TWICE],
  ["content-type", "application/json; charset=iso-8859-1", CHARSET],
  ["content-type", "application/json;v=1;CHARSET=utf-16", CHARSET],
  ["content-type", "application/json; charset=utf-80", CHARSET],
  ["content-type", 'application/json; charset="latin1"', CHARSET],
  ["content-type", "application/json; charset=", CHARSET],
  ["content-type", "application/json; charset=utf-8; charset=utf-7", CHARSET],
  ["content-encoding", "gzip", ENCODING],
  ["content-encoding", "identity, br", ENCODING],
  ["content-length", "5, 5", LENGTH_TWICE],
  ["content-length", "300000000, 300000000", LENGTH_TWICE],
  ["content-length", "5, x", LENGTH],
  ["content-length", "0x5", LENGTH],
  ["content-length", "", LENGTH],
  ["transfer-encoding", "gzip", CODING],
  ["transfer-encoding", "gzip, chunked", CODING],
  ["transfer-encoding", "chunked, chunked", CODING],
  ["transfer-encoding", "", CODING],
])("readJsonObject() rejects the %s '%s' without reading the body: %s", async (name, value, message) => {
  const source = endlessBody();
  const code = /^content-(type|encoding)$/.test(name) ? "invalid_content_type" : "invalid_request";

  await assertRefused(read(source.stream, { [name]: value }), code, message);

  assertEquals(source.pulls, 0);
});

Deno.test("readJsonObject() also accepts the otherType of its rules", async () => {
  const readTyped = (type: string) =>
    read("{}", { "content-type": type }, { ...BODY_RULES, otherType: MERGE_PATCH });

  assertEquals((await readTyped(`${MERGE_PATCH}; charset=utf-8`)).object, {});
  assertEquals((await readTyped("application/json")).object, {});
  await assertRefused(readTyped(`${MERGE_PATCH}; charset=latin1`), "invalid_content_type", CHARSET);
  await assertRefused(readTyped("text/plain"), "invalid_content_type", `application/json or ${MERGE_PATCH}.`);
});

Deno.test.each([
  ["no body", null, "invalid_json", "The body is empty; send a JSON object."],
  ["a body of length zero", "", "invalid_json", "The body is empty; send a JSON object."],
  ["a blank body", " ", "invalid_json", "must be valid JSON"],
  ["half an object", '{"a":', "invalid_json", "must be valid JSON"],
  ["half a character", new Uint8Array([0x22, 0xc3, 0x22]), "invalid_json", "must be UTF-8"],
  ["17 levels", `{"a":${"[".repeat(16)}${"]".repeat(16)}}`, "invalid_json", "nested at most 16 levels deep"],
  ["25,000 levels", `{"a":${"[".repeat(25_000)}`, "invalid_json", "nested at most 16 levels deep"],
  ["1,001 values", `{"a":[1${",1".repeat(998)}]}`, "invalid_json", "at most 1,000 values"],
  ["30,000 values", `{"a":[1${",1".repeat(30_000)}]}`, "invalid_json", "at most 1,000 values"],
  ["an array", "[{}]", "invalid_request", "must be a JSON object"],
  ["a string", '"{}"', "invalid_request", "must be a JSON object"],
  ["null", "null", "invalid_request", "must be a JSON object"],
])("readJsonObject() rejects %s", async (_, body, code, message) => {
  await assertRefused(read(body), code, message);
});

Deno.test("readJsonObject() accepts 1,000 values and 16 levels", async () => {
  const levels = `${"[".repeat(15)}1${"]".repeat(15)}`;

  const { object: { a, b } } = await read(`{"a":[1${",1".repeat(981)}],"b":${levels}}`);

  assertEquals([Array.isArray(a) && a.length, JSON.stringify(b)], [982, levels]);
});

Deno.test("readJsonObject() copies and joins chunks, even if they split a character", async () => {
  const buffer = new Uint8Array(1);
  async function* chunks() {
    for (const byte of encode('{"a":"é"}')) {
      buffer[0] = byte;
      yield buffer;
      await setImmediate();
    }
  }
  assertEquals((await read(ReadableStream.from(chunks()))).object, { a: "é" });
});

Deno.test("readJsonObject() reads a body in chunks if its Content-Length exceeds 64 KiB, and none of another length", async () => {
  const rules: BodyRules = { ...BODY_RULES, maxBytes: 1024 * 1024 };
  const large = `{"a":"${"b".repeat(65_536)}"}`;
  const headers = { ...TYPED, "content-length": `${large.length}` };
  const request = new Request("http://localhost/", { method: "POST", headers, body: large });
  Object.defineProperty(request, "bytes", { value: () => Promise.reject(new Error("bytes() was called")) });

  assertEquals((await readJsonObject(request, rules)).bytes, encode(large));
  for (const [text, length] of [["{}", "1"], ["{}", "11"], [large, "65545"], [large, "66000"]] as const) {
    const refused = read(text, { "content-length": length }, rules);
    await assertRefused(refused, "invalid_request", "ended before it was complete");
  }
});

Deno.test.each([
  ["before reading, by its Content-Length", { "content-length": "11" }, 0, false],
  ["once it has too many bytes", {}, 11, true],
])("readJsonObject() rejects a body that is too large: %s", async (_, headers, pulls, cancelled) => {
  const source = endlessBody();

  await assertRefused(read(source.stream, headers, SHORT), "payload_too_large", "at most 10 bytes");

  assertEquals([source.pulls, source.cancelled], [pulls, cancelled]);
});

Deno.test.each([["unknown length", {}], ["a known length", { "content-length": "10" }]])(
  "readJsonObject() accepts a body of %s up to the limit, and rejects stalled or broken ones",
  async (_, headers) => {
    const stalled = new ReadableStream({ start: (controller) => controller.enqueue(encode("{")) });
    const broken = new ReadableStream({ pull: (controller) => controller.error(new TypeError("reset")) });
    const late = read(stalled, headers, { ...SHORT, timeoutMs: 1 });

    assertEquals((await read('{"a":"bc"}', headers, SHORT)).object, { a: "bc" });
    await assertRefused(late, "request_timeout", "within 0.001 s");
    await assertRefused(read(broken, headers, SHORT), "invalid_request", "ended before it was complete");
  },
);

Deno.test.each<[what: string, body: string | null, headers: Record<string, string>, expected: string]>([
  ["no headers", null, {}, "{}"],
  ["a Content-Length of zero", null, { "content-length": "0" }, "{}"],
  ["no bytes in chunks", null, { ...CHUNKED, ...HTTP_1 }, "{}"],
  ["only a Content-Type over HTTP/1.1", null, { ...TYPED, ...HTTP_1 }, "{}"],
  ["only a Content-Type over HTTP/2, because the client aborted", null, TYPED, "invalid_json"],
  ["an object that no header announces", '{"a":1}', {}, "invalid_content_type"],
  ["an object of no type in chunks", '{"a":1}', CHUNKED, "invalid_content_type"],
  ["an object of unknown length", '{"a":1}', { ...TYPED, ...HTTP_1 }, '{"a":1}'],
  ["an object in chunks", '{"a":1}', { ...TYPED, ...HTTP_1, ...CHUNKED }, '{"a":1}'],
])(
  "readJsonObject() reads an empty object only if there is no body: %s",
  async (_, body, headers, expected) => {
    const request = new Request("http://localhost/", { method: "POST", body: body && encode(body), headers });
    const reading = readJsonObject(request, { ...BODY_RULES, mayBeEmpty: true });

    if (expected.startsWith("{")) assertEquals(JSON.stringify((await reading).object), expected);
    else await assertRefused(reading, expected, "");
  },
);

Deno.test("readJsonObject() clears its timer once a delayed body is complete", async () => {
  const parts = ["{}"];
  const { stream } = sourceOf(async () => {
    // By then the timer has started.
    for (const _ of ["now", "then"]) await setImmediate();
    return parts.shift();
  });

  assertEquals((await read(stream)).object, {});
});

Deno.test.each<[string, number, Partial<BodyRules>, Record<string, string>, string | undefined]>([
  ["1,900 ms", 1_900, {}, CHUNKED, undefined],
  ["2,100 ms", 2_100, {}, CHUNKED, "A chunked body must not pause for 2 s."],
  ["2,100 ms on Deploy", 2_100, { stallMs: Infinity }, CHUNKED, undefined],
  ["2,100 ms and is not chunked", 2_100, {}, {}, undefined],
  ["3,400 ms on Deploy", 3_400, { stallMs: Infinity }, CHUNKED, "The body must arrive within 10 s."],
])("readJsonObject() waits for a body that pauses for %s", async (_, ms, rules, headers, problem) => {
  await using time = new VirtualTime();
  const parts = ['{"a"', ":1", "}"];
  const source = sourceOf(async () => (await pause(ms), parts.shift()));
  const reading = read(source.stream, headers, { ...BODY_RULES, ...rules });

  if (problem === undefined) assertEquals((await time.until(reading, 10_000)).object, { a: 1 });
  else await assertRefused(time.until(reading, 10_100), "request_timeout", problem);

  assertEquals(source.cancelled, problem !== undefined);
  await time.advance(ms);
});

Deno.test("readJsonObject() reads a part that has arrived when its timer fires late", async () => {
  await using time = new VirtualTime();
  const parts = ["{}"];
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
  const reading = read(sourceOf(async () => (await arrived, parts.shift())).stream, CHUNKED);
  const setTimer = globalThis.setTimeout;
  const late = (callback: () => void, ms: number) => setTimer(() => (callback(), arrive()), ms);
  Object.assign(globalThis, { setTimeout: late });

  assertEquals((await time.until(reading, 5_000)).object, {});
});

Deno.test.each([[1_066, undefined], [1_067, "invalid_request"]])(
  "readJsonObject() reads %i chunks of a byte: %s",
  async (length, code) => {
    const text = `{"a":"${"b".repeat(length - 8)}"}`;

    const reading = read(ReadableStream.from([...text].map(encode)), CHUNKED);

    if (code === undefined) assertEquals((await reading).bytes.length, length);
    else await assertRefused(reading, code, "at most 1,000 chunks, and one more for each 16 bytes");
  },
);
