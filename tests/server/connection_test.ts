import { assert, assertEquals } from "@std/assert";
import { addAnimal, listAnimals } from "./client.ts";
import { RawConnection, rawRequest } from "./raw_connection.ts";
import { TemporaryStore } from "./temporary_store.ts";

const JSON_TYPE = { "content-type": "application/json" };

Deno.test("server answers in order when requests are pipelined", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();
  using connection = await RawConnection.open(server.port);
  const ids = Array.from({ length: 10 }, (_, index) => index + 1);
  const add = (id: number) => `{"name":"animal ${id}","categoryId":1}`;

  await connection.send(
    ids.map((id) =>
      rawRequest("POST /v1/pets", { authorization, ...JSON_TYPE, "x-request-id": `add-${id}` }, add(id)) +
      rawRequest(`GET /v1/pets/${id}`, { authorization, "x-request-id": `get-${id}` })
    ).join(""),
  );

  for (const id of ids) {
    const animal = `{"id":${id},"name":"animal ${id}","categoryId":1,"status":"available"}`;
    const added = await connection.receive();
    assertEquals(added?.status, 201);
    assertEquals(added?.headers.get("x-request-id"), `add-${id}`);
    assertEquals(added?.body, animal);
    const got = await connection.receive();
    assertEquals(got?.status, 200);
    assertEquals(got?.headers.get("x-request-id"), `get-${id}`);
    assertEquals(got?.body, animal);
  }
});

Deno.test("server answers the next request when it refused one with its body unread", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve();
  using connection = await RawConnection.open(server.port);

  await connection.send(rawRequest("POST /v1/pets", JSON_TYPE, '{"name":"GET /v1/pets HTTP/1.1"}'));
  await connection.send(rawRequest("GET /health"));

  assertEquals((await connection.receive())?.status, 401);
  const next = await connection.receive();
  assertEquals(next?.status, 200);
  assertEquals(next?.body, '{"status":"alive"}');
});

Deno.test("server closes the connection after its answer when the client asks for it", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve();
  using connection = await RawConnection.open(server.port);

  await connection.send(rawRequest("GET /health", { connection: "close" }) + rawRequest("GET /ready"));

  assertEquals((await connection.receive())?.status, 200);
  assertEquals(await connection.receiveRest(), "");
});

Deno.test("server makes one animal when a client half-closes the connection and tries again", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();
  const animal = '{"name":"Rex","categoryId":1}';

  for (let time = 1; time <= 5; time++) {
    const idempotencyKey = `time-${time}`;
    using connection = await RawConnection.open(server.port);
    const headers = { authorization, ...JSON_TYPE, "idempotency-key": idempotencyKey };
    await connection.send(rawRequest("POST /v1/pets", headers, animal));
    await connection.closeWrite();
    const answer = await connection.receive();
    assert(answer === undefined || answer.status === 201);

    const again = await addAnimal(server, "Rex", { authorization, idempotencyKey });
    assertEquals(again.status, 201);
    assertEquals((await listAnimals(server, authorization)).length, time);
  }
});

Deno.test("server stores nothing and goes on when a client leaves in the middle of a body", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();
  const headers = { authorization, ...JSON_TYPE, "content-length": "29" };

  for (const leave of ["by closing", "by closing its half"] as const) {
    using connection = await RawConnection.open(server.port);
    await connection.send(rawRequest("POST /v1/pets", { ...headers, expect: "100-continue" }));
    assertEquals((await connection.receive())?.status, 100);
    await connection.send('{"name":"Rex"');
    if (leave === "by closing") continue;
    await connection.closeWrite();
    const answer = await connection.receive();
    assert(answer === undefined || answer.status === 400);
  }

  assertEquals(await listAnimals(server, authorization), []);
  assertEquals((await addAnimal(server, "Tom", { authorization })).status, 201);
});

Deno.test("server goes on when clients leave before they are answered", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();

  await Promise.all(Array.from({ length: 50 }, async () => {
    using connection = await RawConnection.open(server.port);
    await connection.send(rawRequest("GET /v1/pets", { authorization }));
  }));

  assertEquals(await listAnimals(server, authorization), []);
});
