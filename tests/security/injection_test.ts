import { assertEquals, assertMatch } from "@std/assert";
import { jsonHeaders, RawConnection, rawRequest } from "../process/raw_connection.ts";
import { ITEM, LIST, PATH, textField } from "../process/shipped.ts";
import { ServedStore } from "../process/temporary_store.ts";

/** Text that would begin a header or response of the attacker if it were echoed as it is. */
const PAYLOADS = [
  "\r\ninjected: 1",
  "\n injected: 1",
  "\rinjected: 1",
  "%0d%0ainjected:%201",
  "\u010d\u010ainjected: 1",
];
/** Headers whose values the service echoes or uses in a response. */
const ECHOED = [
  "x-request-id",
  "host",
  "origin",
  "access-control-request-method",
  "access-control-request-headers",
  "idempotency-key",
  "if-none-match",
  "if-match",
  "x-forwarded-host",
];

Deno.test("server never lets an echoed value begin another header or response", async () => {
  await using served = await ServedStore.start();
  const { server } = served;
  const headers = jsonHeaders(served.key);
  const post = (more: Record<string, string>) => rawRequest(`POST ${PATH}`, { ...headers, ...more }, ITEM);

  for (const payload of PAYLOADS) {
    const inPath = encodeURI(payload);
    const requests = [
      ...ECHOED.map((name) => post({ [name]: `a${payload}` })),
      rawRequest(`${LIST}?limit=1&cursor=${inPath}`, headers),
      rawRequest(`${LIST}?limit=1&x=${inPath}`, headers),
      rawRequest(`${LIST}/${inPath}`, headers),
      rawRequest(
        `POST ${PATH}`,
        headers,
        JSON.stringify({ ...JSON.parse(ITEM), [textField("a")]: `a${payload}` }),
      ),
      rawRequest("POST /v1/accounts", headers, JSON.stringify({ name: `a${payload}` })),
    ];
    for (const request of requests) {
      using connection = await RawConnection.open(server.port);
      await connection.send(request.replace("\r\n", "\r\nconnection: close\r\n"));
      const text = await connection.receiveRest();
      const [head = ""] = text.split("\r\n\r\n", 1);
      assertMatch(head, /^HTTP\/1\.1 [24]\d\d /, request);
      assertEquals(/^\s*injected/im.test(head), false, request);
      assertEquals(text.split("HTTP/1.1 ").length, 2, request);
    }
  }
});
