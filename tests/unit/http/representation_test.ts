import { assertEquals, assertNotEquals } from "@std/assert";
import { HostedContent } from "../../../src/http/representation.ts";

const BASE = "http://pets.example";
const TEXT = (base: string) => `${base}/v1 ${"Rex ".repeat(1_000)} ${base}/v1/pets é`;
const CONTENT = new HostedContent(TEXT, "text/plain", { "x-own": "a" });

function ask(headers: Record<string, string> = {}, base = BASE): Response {
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
])("HostedContent answers Accept-Encoding %o with gzip: %s", async (accepted, isGzip) => {
  const response = ask({ "accept-encoding": accepted });
  const etag = response.headers.get("etag") ?? "";

  assertEquals(response.headers.get("content-encoding"), isGzip ? "gzip" : null);
  assertEquals(response.headers.get("vary"), "Origin, Accept-Encoding");
  assertEquals(etag.endsWith('-gzip"'), isGzip);
  const bytes = response.body ?? new Blob().stream();
  const plain = isGzip ? bytes.pipeThrough(new DecompressionStream("gzip")) : bytes;
  assertEquals(await new Response(plain).text(), TEXT(BASE));
  assertEquals(ask({ "accept-encoding": accepted, "if-none-match": etag }).status, 304);
  assertEquals(ask({ "accept-encoding": accepted, "if-none-match": '"else"' }).status, 200);
});

Deno.test("HostedContent has an ETag for each base, and its own headers on 304, too", () => {
  const etag = ask().headers.get("etag") ?? "";

  const unchanged = ask({ "if-none-match": etag });

  assertEquals([unchanged.status, unchanged.headers.get("etag"), unchanged.headers.get("x-own")], [
    304,
    etag,
    "a",
  ]);
  assertEquals(unchanged.headers.get("cache-control"), "no-cache");
  assertNotEquals(ask({}, "http://else.example").headers.get("etag"), etag);
});

Deno.test("HostedContent compresses for a base of any length", async () => {
  const base = `http://${"a".repeat(70_000)}.example`;
  const body = ask({ "accept-encoding": "gzip" }, base).body ?? new Blob().stream();

  const text = await new Response(body.pipeThrough(new DecompressionStream("gzip"))).text();

  assertEquals(text, TEXT(base));
});
