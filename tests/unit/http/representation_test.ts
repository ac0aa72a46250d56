import { assertEquals, assertNotEquals } from "@std/assert";
import { HostedContent } from "../../../src/http/representation.ts";

const BASE = "http://pets.example";
const TEXT = (base: string) => `${base}/v1 ${"Rex ".repeat(1_000)} ${base}/v1/pets é`;
const CONTENT = new HostedContent(TEXT, "text/plain", { "x-own": "a" });

function respond(headers: Record<string, string> = {}, base = BASE): Response {
  return CONTENT.respondTo(new Request("http://localhost/", { headers }), base);
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
])("HostedContent responds to Accept-Encoding %o with gzip: %s", async (accepted, isGzip) => {
  const response = respond({ "accept-encoding": accepted });
  const etag = response.headers.get("etag") ?? "";

  assertEquals(response.headers.get("content-encoding"), isGzip ? "gzip" : null);
  assertEquals(response.headers.get("vary"), "Origin, Accept-Encoding");
  assertEquals(etag.endsWith('-gzip"'), isGzip);
  const bytes = response.body ?? new Blob().stream();
  const plain = isGzip ? bytes.pipeThrough(new DecompressionStream("gzip")) : bytes;
  assertEquals(await new Response(plain).text(), TEXT(BASE));
  assertEquals(respond({ "accept-encoding": accepted, "if-none-match": etag }).status, 304);
  assertEquals(respond({ "accept-encoding": accepted, "if-none-match": '"other"' }).status, 200);
});

Deno.test("HostedContent has a different ETag for each base, and sends its own headers with 304", () => {
  const etag = respond().headers.get("etag") ?? "";

  const unchanged = respond({ "if-none-match": etag });

  assertEquals([unchanged.status, unchanged.headers.get("etag"), unchanged.headers.get("x-own")], [
    304,
    etag,
    "a",
  ]);
  assertEquals(unchanged.headers.get("cache-control"), "no-cache");
  assertNotEquals(respond({}, "http://other.example").headers.get("etag"), etag);
});

Deno.test("HostedContent is compressed correctly for a base of any length", async () => {
  const base = `http://${"a".repeat(70_000)}.example`;
  const body = respond({ "accept-encoding": "gzip" }, base).body ?? new Blob().stream();

  const text = await new Response(body.pipeThrough(new DecompressionStream("gzip"))).text();

  assertEquals(text, TEXT(base));
});
