import { assertEquals, assertNotEquals, assertStrictEquals } from "@std/assert";
import { etagOf } from "../../src/web/etag.ts";
import { CompressedText, Representation } from "../../src/web/representation.ts";
import { ownOf } from "../../src/web/response.ts";

const TEXT = `${"Hammer ".repeat(1_000)} é`;
const CONTENT = new CompressedText(TEXT, "text/plain", { "x-own": "a" });

function respond(headers: Record<string, string> = {}): Response {
  return CONTENT.respondTo(new Request("http://localhost/", { headers }));
}

Deno.test.each([
  ["gzip", true],
  ["br, GZIP ; q=0.5, *", true],
  ["deflate,gzip", true],
  ["br, gzip;q=0", false],
  ["gzip; q=0.000, br", false],
  ["identity", false],
  ["notgzip", false],
  ["", false],
])("CompressedText responds to Accept-Encoding %o with gzip: %s", async (accepted, isGzip) => {
  const response = ownOf(respond({ "accept-encoding": accepted }));
  const etag = response.headers.get("etag") ?? "";

  assertEquals(response.headers.get("content-encoding"), isGzip ? "gzip" : null);
  assertEquals(response.headers.get("vary"), "Origin, Accept-Encoding");
  assertEquals(etag.endsWith('-gzip"'), isGzip);
  const bytes = response.body ?? new Blob().stream();
  const plain = isGzip ? bytes.pipeThrough(new DecompressionStream("gzip")) : bytes;
  assertEquals(await new Response(plain).text(), TEXT);
  assertEquals(respond({ "accept-encoding": accepted, "if-none-match": etag }).status, 304);
  assertEquals(respond({ "accept-encoding": accepted, "if-none-match": '"other"' }).status, 200);
});

Deno.test("CompressedText shares one response of each kind, and sends its own headers with 304", () => {
  const full = respond();
  const etag = full.headers.get("etag") ?? "";

  const unchanged = respond({ "if-none-match": etag });

  assertStrictEquals(respond(), full);
  assertStrictEquals(respond({ "accept-encoding": "gzip" }), respond({ "accept-encoding": "gzip" }));
  assertNotEquals(respond({ "accept-encoding": "gzip" }), full);
  assertEquals(unchanged.status, 304);
  assertEquals(
    ["etag", "x-own", "cache-control"].map((name) => unchanged.headers.get(name)),
    [etag, "a", "no-cache"],
  );
});

const ALWAYS = { "x-content-type-options": "nosniff" };

const TAG = etagOf("[]");

/** A representation, as a response to a client that has this version of it, if any. */
function represent(text: string, known?: string): () => Response {
  const representation = new Representation(text, { type: "text/plain", headers: { sunset: "never" } });
  return () => ownOf(representation.respondTo(known));
}

Deno.test.each<[known: string | undefined, status: number]>([
  ...[TAG, `W/${TAG}`, `"6.a", ${TAG}`, `"6.a",W/${TAG},"8.a"`, "*"].map((
    tag,
  ): [string, number] => [tag, 304]),
  ...[undefined, '"6.a"', '"6.a", "8.a"', ""].map((tag): [string | undefined, number] => [tag, 200]),
])("Representation responds to each client that has %s with %i", async (known, status) => {
  const respond = represent("[]", known);

  const responses = [respond(), respond()];
  responses[1]?.headers.set("x-request-id", "second");

  const type = status === 200 ? { "content-type": "text/plain" } : {};
  const lasting = { ...ALWAYS, ...type, etag: TAG, "cache-control": "private, no-cache", sunset: "never" };
  assertEquals(Object.fromEntries(responses[0]?.headers ?? []), lasting);
  for (const response of responses) {
    assertEquals([response.status, await response.text()], [status, status === 200 ? "[]" : ""]);
  }
});
