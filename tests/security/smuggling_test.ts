import { assertEquals } from "@std/assert";
import { jsonHeaders, RawConnection } from "../process/raw_connection.ts";
import { LIST, PATH } from "../process/shipped.ts";
import { ServedStore } from "../process/temporary_store.ts";

/** A request inside the body of another. */
const INNER = `${LIST}/777 HTTP/1.1\r\nhost: a\r\n\r\n`;
const LENGTH = `content-length: ${INNER.length}`;
const CHUNKS = `${INNER.length.toString(16)}\r\n${INNER}\r\n0\r\n\r\n`;

/** Framings that servers and proxies have interpreted differently, each with a body. */
const SHAPES: readonly (readonly [name: string, lines: readonly string[], body: string])[] = [
  ["a length and chunks", [LENGTH, "transfer-encoding: chunked"], `0\r\n\r\n${INNER}`],
  ["chunks and a length", ["transfer-encoding: chunked", LENGTH], `0\r\n\r\n${INNER}`],
  ["two lengths", ["content-length: 0", LENGTH], INNER],
  ["lengths in a list", [`content-length: 0, ${INNER.length}`], INNER],
  ["a length with a sign", [`content-length: +${INNER.length}`], INNER],
  ["a length in hexadecimal", [`content-length: 0x${INNER.length.toString(16)}`], INNER],
  ["a space before the colon", ["transfer-encoding : chunked"], CHUNKS],
  ["a tab before the coding", ["transfer-encoding:\tchunked"], CHUNKS],
  ["an unknown coding", ["transfer-encoding: xchunked", LENGTH], INNER],
  ["chunked and identity", ["transfer-encoding: chunked, identity"], CHUNKS],
  ["chunked twice", ["transfer-encoding: chunked", "transfer-encoding: chunked"], CHUNKS],
  ["a folded line", ["transfer-encoding:\r\n chunked", LENGTH], INNER],
  ["a vertical tab in the coding", ["transfer-encoding: \vchunked", LENGTH], INNER],
  ["a chunk's size beyond 64 bits", ["transfer-encoding: chunked"], `10000000000000000\r\n${INNER}`],
  ["a chunk extension with a line feed", ["transfer-encoding: chunked"], `1;\n${CHUNKS}`],
];

Deno.test("server never responds to a request inside the body of another", async (t) => {
  await using served = await ServedStore.start();
  const { authorization } = jsonHeaders(served.key);

  for (const [name, lines, body] of SHAPES) {
    await t.step(name, async () => {
      const head = [
        `POST ${PATH} HTTP/1.1`,
        "host: a",
        `authorization: ${authorization}`,
        ...lines,
        "",
        "",
      ];
      using connection = await RawConnection.open(served.server.port);
      await connection.send(head.join("\r\n") + body);
      await connection.closeWrite().catch(() => {});
      const statuses = [];
      for (let answer; (answer = await connection.receive()) !== undefined;) statuses.push(answer.status);

      // The inner request has no key, so it would get 401.
      assertEquals(statuses.filter((status) => status < 400 || status === 401), []);
    });
  }
});
