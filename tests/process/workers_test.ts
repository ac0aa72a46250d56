import { assertEquals, assertMatch } from "@std/assert";
import { callAtOnce, type Reply, tally } from "../support/client.ts";
import { runServer, type ServerProcess } from "../support/process.ts";
import { jsonHeaders, RawConnection, rawRequest } from "../support/raw_connection.ts";
import { inOneDay, ServedStore, TemporaryStore } from "../support/temporary_store.ts";

const TOKEN = "t".repeat(32);
const WORKERS = { WORKERS: "2", OPERATOR_TOKEN: TOKEN };
/** Enough for both workers to get some of the connections. */
const CONNECTIONS = 64;
const MORTAL = { runtime: ["--preload", "tests/support/mortal_workers.ts"] };

Deno.test("server with two workers responds from both, and adds up their metrics", async () => {
  await using served = await ServedStore.start({ variables: WORKERS });
  const { server, key } = served;

  const responding = await workersResponding(server);
  await callAtOnce(CONNECTIONS, [server], key);

  const metrics = await metricsOf(server);
  const samples = (name: string) =>
    [...metrics.matchAll(new RegExp(`^${name} (\\S+)$`, "gm"))].map(([, value]) => value);
  assertEquals(responding, 2);
  assertMatch(server.stderr.text, /^Animal Store .+, 2 workers\.$/m);
  assertEquals(samples('animal_store_requests_total{route="/health",method="GET",status="200"}'), [
    `${CONNECTIONS}`,
  ]);
  assertEquals(samples('animal_store_admitted_total{plan="enterprise"}'), [`${CONNECTIONS}`]);
  assertEquals(samples('animal_store_request_duration_seconds_count{route="/v1/pets"}'), [`${CONNECTIONS}`]);
  assertEquals(samples("process_start_time_seconds").length, 1);
  assertEquals((await server.stop()).code, 0);
});

Deno.test("server with four workers admits exactly as many requests as the limits allow", () =>
  inOneDay(async () => {
    await using served = await ServedStore.start({ variables: { WORKERS: "4" }, perDay: 300 });
    const { server, key, store, account } = served;

    const replies = (await Promise.all([1, 2, 3, 4].map(() => callAtOnce(150, [server], key)))).flat();
    await server.stop();

    assertEquals(replies.filter(({ status }) => status === 200).length, 300);
    const { usedToday, leasedToday } = await store.usageOf(account);
    assertEquals([usedToday, leasedToday], [300, 0]);
  }));

Deno.test("server with two workers counts requests without a key in one place", async () => {
  const minute = () => Math.floor(Date.now() / 60_000);

  let started: number;
  let replies: readonly Reply[];
  do {
    await using served = await ServedStore.start({ variables: WORKERS });
    started = minute();
    replies = await callAtOnce(150, [served.server]);
  } while (started !== minute());

  assertEquals(tally(replies)["401 missing_api_key"] ?? 0, 60);
});

Deno.test("server with two workers writes a whole line for each request to its access log", async () => {
  await using served = await ServedStore.start({ variables: { ...WORKERS, ACCESS_LOG: "json" } });
  const { server } = served;

  for (let round = 0; round < 20; round++) await callAtOnce(100, [server], undefined, "GET /health");
  const { code, stdout } = await server.stop();

  const records = stdout.trim().split("\n").map((line) => JSON.parse(line));
  assertEquals(code, 0);
  assertEquals(records.filter(({ route }) => route === "/health").length, 2_000);
});

Deno.test("server replaces a worker that opens a file and so dies, logs that once, and keeps its counts", async () => {
  await using store = await TemporaryStore.create();
  await store.createAccount();
  await using server = await store.serve(WORKERS, MORTAL);
  assertEquals(await workersResponding(server), 2);
  await callAtOnce(CONNECTIONS, [server], undefined, "GET /ready");
  assertEquals(await countReadinessChecks(server), CONNECTIONS);

  server.signal("SIGUSR2");
  await server.wrote("stderr", /"route":"worker"/);
  while (await workersResponding(server) < 2);
  assertEquals(await countReadinessChecks(server), CONNECTIONS);
  const { code, errorLines } = await server.stop();

  assertEquals(code, 0);
  const records = errorLines.filter((line) => !/^(?:Listening|Animal|A worker starts)/.test(line));
  assertEquals(records.map((line) => JSON.parse(line)).map(({ route, error }) => [route, error]), [
    ["worker", "NotCapable"],
  ]);
});

Deno.test("server stops a worker that is still starting", async () => {
  await using store = await TemporaryStore.create();
  const { key } = await store.createAccount();
  await using server = await store.serve(WORKERS, MORTAL);
  const uploads = await Promise.all(Array.from({ length: 8 }, () => RawConnection.open(server.port)));
  for (const upload of uploads) {
    await upload.send(rawRequest("POST /v1/pets", { ...jsonHeaders(key), "content-length": "9" }));
  }

  server.signal("SIGUSR2");
  await server.wrote("stderr", /(?:A worker starts[^]*){3}/);
  const { code } = await server.stop();

  using kv = await Deno.openKv(store.kvPath);
  const markers = await Array.fromAsync(kv.list({ prefix: ["commits"] }));
  assertEquals(code, 0);
  // The dead worker could not remove its own.
  assertEquals(new Set(markers.map(({ key }) => key[1])).size, 1);
  for (const upload of uploads) upload[Symbol.dispose]();
});

Deno.test("server with two workers does not share a port with another service", async () => {
  await using served = await ServedStore.start({ variables: WORKERS });
  const { port } = served.server;

  const { code, errorLines } = await runServer({
    PORT: `${port}`,
    WORKERS: "2",
    KV_PATH: served.store.kvPath,
  });

  assertEquals(code, 1);
  assertMatch(errorLines.join("\n"), /^Cannot listen on 127\.0\.0\.1:\d+: .+\. Set PORT to another port\.$/);
});

async function metricsOf(server: ServerProcess): Promise<string> {
  return await (await server.fetch("GET /metrics", { key: TOKEN })).text();
}

/** The number of responses to `GET /ready`, according to the metrics. */
async function countReadinessChecks(server: ServerProcess): Promise<number> {
  const [, count] = /^animal_store_requests_total\{route="\/ready".* (\d+)$/m.exec(await metricsOf(server)) ??
    [];
  return Number(count);
}

/** The number of workers that respond over many connections. Each has its own prefix of request IDs. */
async function workersResponding({ port }: ServerProcess): Promise<number> {
  const prefixes = await Promise.all(Array.from({ length: CONNECTIONS }, () => prefixFrom(port)));
  return new Set(prefixes.filter((prefix) => prefix !== undefined)).size;
}

/** The prefix of a worker's request IDs; undefined if the worker has just died. */
async function prefixFrom(port: number): Promise<string | undefined> {
  try {
    using connection = await RawConnection.open(port);
    await connection.send(rawRequest("GET /health"));
    return (await connection.receive())?.headers.get("x-request-id")?.slice(0, 13);
  } catch (error) {
    if (error instanceof Deno.errors.ConnectionReset) return undefined;
    throw error;
  }
}
