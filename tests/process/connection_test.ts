import manifest from "../../deno.json" with { type: "json" };
import { assert, assertEquals } from "@std/assert";
import { jsonHeaders, RawConnection, rawRequest } from "./raw_connection.ts";
import { addItem, ITEM, itemWith, LIST, listIds, PATH } from "./shipped.ts";
import { ServedStore } from "./temporary_store.ts";

Deno.test("server responds to pipelined requests in order", async () => {
  await using served = await ServedStore.start();
  using connection = await RawConnection.open(served.server.port);
  const headers = jsonHeaders(served.key);
  const ids = Array.from({ length: 10 }, (_, index) => index + 1);
  const add = (id: number) => rawRequest(`POST ${PATH}`, { ...headers, "x-request-id": `add-${id}` }, ITEM);
  const get = (id: number) => rawRequest(`${LIST}/${id}`, { ...headers, "x-request-id": `get-${id}` });

  await connection.send(ids.map((id) => add(id) + get(id)).join(""));

  for (const id of ids) {
    for (const [status, name] of [[201, "add"], [200, "get"]] as const) {
      const answer = await connection.receive();
      assertEquals([answer?.status, answer?.headers.get("x-request-id")], [status, `${name}-${id}`]);
      assertEquals(answer?.body, itemWith(id));
    }
  }
});

Deno.test("server responds to the next request after refusing one without reading its body", async () => {
  await using served = await ServedStore.start();
  using connection = await RawConnection.open(served.server.port);

  await connection.send(rawRequest(`POST ${PATH}`, {}, `{"name":"${LIST} HTTP/1.1"}`));
  await connection.send(rawRequest("GET /health", { connection: "close" }) + rawRequest("GET /ready"));

  assertEquals((await connection.receive())?.status, 401);
  const next = await connection.receive();
  assertEquals([next?.status, next?.body], [200, `{"status":"alive","version":"${manifest.version}"}`]);
  assertEquals(await connection.receiveRest(), "");
});

Deno.test("server stores nothing and stays up if clients disconnect before a body or response ends", async () => {
  await using served = await ServedStore.start();
  const { server, key } = served;
  const headers = { ...jsonHeaders(key), "content-length": `${ITEM.length}`, expect: "100-continue" };

  for (const ending of ["close", "half-close"] as const) {
    using connection = await RawConnection.open(server.port);
    await connection.send(rawRequest(`POST ${PATH}`, headers));
    assertEquals((await connection.receive())?.status, 100);
    await connection.send(ITEM.slice(0, -1));
    if (ending === "close") continue;
    await connection.closeWrite();
    const answer = await connection.receive();
    assert(answer === undefined || answer.status === 400);
  }
  await Promise.all(Array.from({ length: 50 }, async () => {
    using connection = await RawConnection.open(server.port);
    await connection.send(rawRequest(LIST, jsonHeaders(key)));
  }));

  assertEquals(await listIds(server, key), []);
  assertEquals((await addItem(server, key)).status, 201);
});
