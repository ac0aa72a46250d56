import { assertEquals, assertMatch } from "@std/assert";
import { jsonHeaders, RawConnection, rawRequest } from "./raw_connection.ts";
import { ITEM, LIST, PATH } from "./shipped.ts";
import { ServedStore } from "./temporary_store.ts";

Deno.test("server sends no body with 304, and never compresses a list", async () => {
  await using served = await ServedStore.start();
  const headers = jsonHeaders(served.key);
  using connection = await RawConnection.open(served.server.port);
  const get = async (more: Record<string, string> = {}) => {
    await connection.send(rawRequest(LIST, { ...headers, ...more }));
    return await connection.receive({
      bodiless: "if-none-match" in more && more["if-none-match"] !== '"other"',
    });
  };
  await connection.send(rawRequest(`POST ${PATH}`, headers, ITEM).repeat(20));
  for (let id = 1; id <= 20; id++) assertEquals((await connection.receive())?.status, 201);

  const plain = await get();
  const etag = plain?.headers.get("etag") ?? "";
  const zipped = await get({ "accept-encoding": "gzip, br" });
  const unchanged = await get({ "accept-encoding": "gzip", "if-none-match": `"other",W/${etag}` });
  const changed = await get({ "if-none-match": '"other"' });

  assertMatch(etag, /^"[\x21\x23-\x7e]+"$/);
  for (const answer of [zipped, changed]) {
    assertEquals([answer?.status, answer?.body], [200, plain?.body]);
    assertEquals(["etag", "content-encoding"].map((name) => answer?.headers.get(name)), [etag, null]);
  }
  assertEquals(unchanged?.status, 304);
  assertEquals(["etag", "content-type"].map((name) => unchanged?.headers.get(name)), [etag, null]);
});
