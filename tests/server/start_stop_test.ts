import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { RawConnection, rawRequest } from "./raw_connection.ts";
import type { ServerProcess, Variables } from "./server_process.ts";
import { TemporaryStore } from "./temporary_store.ts";

Deno.test("server makes the KV file with its folder when both are missing", async () => {
  await using store = await TemporaryStore.create();
  const kvPath = `${store.folder}/not/yet/animals.kv`;
  await using server = await store.serve({ KV_PATH: kvPath });

  const response = await fetch(`${server.origin}/ready`);

  assertEquals(response.status, 200);
  assertEquals(await response.json(), { status: "ready" });
  assert((await Deno.stat(kvPath)).isFile);
});

Deno.test("server prints where it listens and the first steps when there is no key", async () => {
  await using store = await TemporaryStore.create();

  const { port, lines } = await linesOfOneRun(store);

  assertEquals(lines[0], `Listening on http://localhost:${port}/`);
  assertStringIncludes(
    lines.join("\n"),
    `KEY=$(KV_PATH='${store.kvPath}' deno task keys create --account me --plan free)`,
  );
  assertStringIncludes(
    lines.join("\n"),
    `curl -H "Authorization: Bearer $KEY" http://localhost:${port}/v1/pets`,
  );
});

Deno.test("server prints only where it listens when there is a key", async () => {
  await using store = await TemporaryStore.create();
  await store.issueKey();

  const { port, lines } = await linesOfOneRun(store);

  assertEquals(lines, [`Listening on http://localhost:${port}/`]);
});

Deno.test("server prints only where it listens when it runs in production", async () => {
  await using store = await TemporaryStore.create();

  const { port, lines } = await linesOfOneRun(store, { ENVIRONMENT: "production" });

  assertEquals(lines, [`Listening on http://localhost:${port}/`]);
});

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  Deno.test(`server answers what is in flight and exits 0 when it gets ${signal}`, async () => {
    await using store = await TemporaryStore.create();
    const { authorization } = await store.issueKey();
    await using server = await store.serve();
    using connection = await RawConnection.open(server.port);
    const body = '{"name":"Rex","categoryId":1}';
    await connection.send(rawRequest("POST /v1/pets", {
      authorization,
      "content-type": "application/json",
      "content-length": `${body.length}`,
      expect: "100-continue",
    }));
    assertEquals((await connection.receive())?.status, 100);

    server.signal(signal);
    await untilStopping(server);
    await connection.send(body);
    const answer = await connection.receive();
    const { code, errorLines } = await server.ended();

    assertEquals(answer?.status, 201);
    assertMatch(answer?.body ?? "", /"name":"Rex"/);
    assertEquals(code, 0);
    assertEquals(errorLines, [`Listening on http://localhost:${server.port}/`]);
  });
}

Deno.test("server exits 0 when it gets both signals and a connection stays idle", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve();
  using connection = await RawConnection.open(server.port);
  await connection.send(rawRequest("GET /health"));
  assertEquals((await connection.receive())?.status, 200);

  server.signal("SIGTERM");
  server.signal("SIGINT");
  const { code } = await server.ended();

  assertEquals(code, 0);
  assertEquals(await connection.receiveRest(), "");
});

Deno.test("server exits 0 when it is stopped the moment it listens", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve();

  server.signal("SIGTERM");
  const { code } = await server.ended();

  assertEquals(code, 0);
});

/** What a server says on standard error from its start to a stop after its first answers. */
async function linesOfOneRun(
  store: TemporaryStore,
  variables: Variables = {},
): Promise<{ port: number; lines: readonly string[] }> {
  await using server = await store.serve(variables);
  const response = await fetch(`${server.origin}/ready`);
  await response.body?.cancel();
  assertEquals(response.status, 200);
  server.signal("SIGTERM");
  const { code, errorLines, stdout } = await server.ended();
  assertEquals(code, 0);
  assertEquals(stdout, "");
  return { port: server.port, lines: errorLines };
}

/** Waits until the server takes nothing new: it refuses connections, or answers 503 on them. */
async function untilStopping(server: ServerProcess): Promise<void> {
  while (true) {
    try {
      using connection = await RawConnection.open(server.port);
      await connection.send(rawRequest("GET /health"));
      if ((await connection.receive())?.status === 503) return;
    } catch (error) {
      if (error instanceof Deno.errors.ConnectionRefused) return;
      throw error;
    }
  }
}
