import manifest from "../../deno.json" with { type: "json" };
import { assert, assertEquals } from "@std/assert";
import { addAnimal, listAnimals } from "../support/client.ts";
import { jsonHeaders, RawConnection, rawRequest } from "../support/raw_connection.ts";
import { ServedStore } from "../support/temporary_store.ts";

const ANIMAL = '{"name":"Rex","categoryId":1}';

Deno.test("server responds to pipelined requests in order", async () => {
  await using served = await ServedStore.start();
  using connection = await RawConnection.open(served.server.port);
  const headers = jsonHeaders(served.key);
  const ids = Array.from({ length: 10 }, (_, index) => index + 1);
  const add = (id: number) =>
    rawRequest(
      "POST /v1/pets",
      { ...headers, "x-request-id": `add-${id}` },
      `{"name":"${id}","categoryId":1}`,
    );
  const get = (id: number) => rawRequest(`GET /v1/pets/${id}`, { ...headers, "x-request-id": `get-${id}` });

  await connection.send(ids.map((id) => add(id) + get(id)).join(""));

  for (const id of ids) {
    for (const [status, name] of [[201, "add"], [200, "get"]] as const) {
      const answer = await connection.receive();
      assertEquals([answer?.status, answer?.headers.get("x-request-id")], [status, `${name}-${id}`]);
      assertEquals(answer?.body, `{"id":${id},"name":"${id}","categoryId":1,"status":"available"}`);
    }
  }
});

Deno.test("server responds to the next request after refusing one without reading its body", async () => {
  await using served = await ServedStore.start();
  using connection = await RawConnection.open(served.server.port);

  await connection.send(rawRequest("POST /v1/pets", {}, '{"name":"GET /v1/pets HTTP/1.1"}'));
  await connection.send(rawRequest("GET /health", { connection: "close" }) + rawRequest("GET /ready"));

  assertEquals((await connection.receive())?.status, 401);
  const next = await connection.receive();
  assertEquals([next?.status, next?.body], [200, `{"status":"alive","version":"${manifest.version}"}`]);
  assertEquals(await connection.receiveRest(), "");
});

Deno.test("server creates one animal if a client half-closes the connection and retries", async () => {
  await using served = await ServedStore.start();
  const { server, key } = served;

  for (let time = 1; time <= 5; time++) {
    const once = { "idempotency-key": `time-${time}` };
    using connection = await RawConnection.open(server.port);
    await connection.send(rawRequest("POST /v1/pets", { ...jsonHeaders(key), ...once }, ANIMAL));
    await connection.closeWrite();
    const answer = await connection.receive();
    assert(answer === undefined || answer.status === 201);

    assertEquals((await addAnimal(server, key, "Rex", once)).status, 201);
    assertEquals((await listAnimals(server, key)).length, time);
  }
});

Deno.test("server rotates a key even if the request has no body", async () => {
  await using served = await ServedStore.start();
  let key = served.key;

  for (const lengths of [{}, { "content-length": "0" }]) {
    using connection = await RawConnection.open(served.server.port);
    const headers = { authorization: `Bearer ${key}`, ...lengths };
    await connection.send(rawRequest("POST /v1/account/key", headers));
    const answer = await connection.receive();

    assertEquals(answer?.status, 201);
    key = JSON.parse(answer?.body ?? "").apiKey;
  }
});

Deno.test("server stores nothing and stays up if clients disconnect before a body or response ends", async () => {
  await using served = await ServedStore.start();
  const { server, key } = served;
  const headers = { ...jsonHeaders(key), "content-length": `${ANIMAL.length}`, expect: "100-continue" };

  for (const ending of ["close", "half-close"] as const) {
    using connection = await RawConnection.open(server.port);
    await connection.send(rawRequest("POST /v1/pets", headers));
    assertEquals((await connection.receive())?.status, 100);
    await connection.send('{"name":"Rex"');
    if (ending === "close") continue;
    await connection.closeWrite();
    const answer = await connection.receive();
    assert(answer === undefined || answer.status === 400);
  }
  await Promise.all(Array.from({ length: 50 }, async () => {
    using connection = await RawConnection.open(server.port);
    await connection.send(rawRequest("GET /v1/pets", jsonHeaders(key)));
  }));

  assertEquals(await listAnimals(server, key), []);
  assertEquals((await addAnimal(server, key, "Tom")).status, 201);
});
