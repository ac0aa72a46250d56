import { assertEquals, assertNotEquals, assertStrictEquals } from "@std/assert";
import { CompressedText } from "../../src/web/representation.ts";
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
  assertEquals([unchanged.status, unchanged.headers.get("etag"), unchanged.headers.get("x-own")], [
    304,
    etag,
    "a",
  ]);
  assertEquals(unchanged.headers.get("cache-control"), "no-cache");
});
