import { setImmediate } from "node:timers/promises";
import { assert, assertEquals, assertLess, assertRejects } from "@std/assert";
import { type BodyLimits, readJsonObject } from "../../src/http/body.ts";
import { ApiError, type ErrorCode } from "../../src/http/error.ts";

const JSON_TYPE = { "content-type": "application/json" };
const PATIENT: BodyLimits = { maxBytes: 10, timeoutMs: 60_000 };

Deno.test.each([
  "application/json",
  "APPLICATION/JSON",
  "application/json; charset=utf-8",
  "application/json;charset=utf-8",
  "application/json ; charset=utf-8",
])("readJsonObject() takes the content type %s", async (type) => {
  const { bytes, object } = await readJsonObject(post('{"a":1}', { "content-type": type }));

  assertEquals(object, { a: 1 });
  assertEquals(new TextDecoder().decode(bytes), '{"a":1}');
});

Deno.test.each([
  "",
  "text/plain",
  "text/json",
  "application/jsonp",
  "application/json-patch+json",
  "application/x-www-form-urlencoded",
  "x application/json",
])("readJsonObject() refuses the content type '%s'", async (type) => {
  const headers = type === "" ? new Headers() : { "content-type": type };
  const request = new Request("http://localhost/", {
    method: "POST",
    body: new TextEncoder().encode("{}"),
    headers,
  });
  await assertRefused(() => readJsonObject(request), "invalid_content_type");
});

Deno.test.each([
  ["an empty body", "", "invalid_json"],
  ["half an object", '{"a":', "invalid_json"],
  ["two values", "{} {}", "invalid_json"],
  ["a comment", "{} // pet", "invalid_json"],
  ["open brackets without end", "[".repeat(50_000), "invalid_json"],
  ["deep nesting", `{"a":${"[".repeat(25_000)}${"]".repeat(25_000)}}`, "invalid_json"],
  ["a list", "[{}]", "invalid_request"],
  ["a string", '"{}"', "invalid_request"],
  ["a number", "1", "invalid_request"],
  ["null", "null", "invalid_request"],
])("readJsonObject() refuses %s", async (_, body, code) => {
  await assertRefused(() => readJsonObject(post(body)), code);
});

Deno.test.each([
  ["a lone continuation", "\x80"],
  ["a character cut short", "\xc3"],
  ["an overlong form", "\xc0\xaf"],
  ["a surrogate", "\xed\xa0\x80"],
  ["a byte that UTF-8 has not", "\xf5\x80\x80\x80"],
])("readJsonObject() refuses UTF-8 with %s", async (_, binary) => {
  const body = Uint8Array.from(`{"a":"${binary}"}`, (character) => character.charCodeAt(0));
  await assertRefused(() => readJsonObject(post(body)), "invalid_json", "UTF-8");
});

Deno.test("readJsonObject() refuses a missing body", async () => {
  const request = new Request("http://localhost/", { method: "POST", headers: JSON_TYPE });
  await assertRefused(() => readJsonObject(request), "invalid_json");
});

Deno.test("readJsonObject() joins chunks, also within a character", async () => {
  const bytes = new TextEncoder().encode('{"a":"é"}');
  const chunks = [...bytes].map((byte) => new Uint8Array([byte]));
  const { object } = await readJsonObject(post(ReadableStream.from(chunks)));

  assertEquals(object, { a: "é" });
});

Deno.test("readJsonObject() keeps odd member names apart from the object's own", async () => {
  const { object } = await readJsonObject(post('{"__proto__":{"name":"Rex"}}'));
  assertEquals(object.name, undefined);
});

Deno.test.each([
  ["no content-length", {}],
  ["a content-length", { "content-length": "10" }],
])("readJsonObject() takes as many bytes as allowed, with %s", async (_, headers) => {
  const { bytes, object } = await readJsonObject(post('{"a":"bc"}', headers), PATIENT);

  assertEquals(bytes.length, PATIENT.maxBytes);
  assertEquals(object, { a: "bc" });
});

Deno.test("readJsonObject() refuses by content-length before it reads", async () => {
  const source = endlessBody();
  const request = post(source.stream, { "content-length": "11" });

  await assertRefused(() => readJsonObject(request, PATIENT), "payload_too_large", "at most 10 bytes");
  assertEquals(source.pulls(), 0);
});

Deno.test.each([
  ["no content-length", {}],
  ["a content-length that a transfer-encoding overrides", {
    "content-length": "10",
    "transfer-encoding": "chunked",
  }],
])("readJsonObject() stops reading once a body is too large, with %s", async (_, headers) => {
  const source = endlessBody();

  await assertRefused(() => readJsonObject(post(source.stream, headers), PATIENT), "payload_too_large");
  assertLess(source.pulls(), 20);
  assert(source.cancelled());
});

Deno.test.each([
  ["no content-length", {}],
  ["a content-length", { "content-length": "10" }],
])("readJsonObject() gives up on a body that stalls, with %s", async (_, headers) => {
  const stalled = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode("{")),
  });

  const error = await assertRefused(
    () => readJsonObject(post(stalled, headers), { maxBytes: 10, timeoutMs: 1 }),
    "request_timeout",
    "within 0.001 s",
  );
  assertEquals(error.headers, { connection: "close" });
});

Deno.test("readJsonObject() keeps no timer once a body that was awaited is complete", async () => {
  const slow = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(new TextEncoder().encode("{")),
    // By then the timer that was to be armed is.
    pull: async (controller) => {
      await setImmediate();
      await setImmediate();
      controller.enqueue(new TextEncoder().encode("}"));
      controller.close();
    },
  });

  assertEquals((await readJsonObject(post(slow))).object, {});
});

Deno.test.each([
  ["no content-length", {}],
  ["a content-length", { "content-length": "10" }],
])("readJsonObject() refuses a body that breaks off, with %s", async (_, headers) => {
  const broken = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.error(new TypeError("connection reset")),
  });
  await assertRefused(
    () => readJsonObject(post(broken, headers)),
    "invalid_request",
    "before it was complete",
  );
});

function post(body: BodyInit, headers: Record<string, string> = {}): Request {
  return new Request("http://localhost/", { method: "POST", body, headers: { ...JSON_TYPE, ...headers } });
}

async function assertRefused(
  read: () => Promise<unknown>,
  code: ErrorCode,
  message?: string,
): Promise<ApiError> {
  const error = await assertRejects(read, ApiError, message);
  assertEquals(error.code, code);
  return error;
}

/** A body of spaces, one byte a pull. */
function endlessBody() {
  let pulls = 0;
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => {
      pulls++;
      controller.enqueue(new Uint8Array([0x20]));
    },
    cancel: () => {
      cancelled = true;
    },
  }, { highWaterMark: 0 });
  return { stream, pulls: () => pulls, cancelled: () => cancelled };
}
