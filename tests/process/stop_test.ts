import { assertEquals, assertMatch } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { call, callAtOnce, outcome, tally } from "../support/client.ts";
import { IN_HASTE, type ProcessOptions, type ServerProcess } from "./process.ts";
import { exchange, jsonHeaders, RawConnection, rawRequest } from "./raw_connection.ts";
import { addItem, idIn, ITEM, itemWith, LIST, listIds, PATH, TITLE } from "./shipped.ts";
import { inOneDay, ServedStore, TemporaryStore } from "./temporary_store.ts";

const HEALTH = rawRequest("GET /health");
/** Enough requests for their log lines to overflow a pipe. */
const REQUESTS = 1_000;
const AT_ONCE = 100;

// deno task sends Ctrl-C twice.
Deno.test.each<Deno.Signal>(["SIGINT", "SIGTERM"])(
  "server responds to requests in flight, ends idle connections and exits 0 on %s, even if it comes twice",
  async (signal) => {
    await using served = await ServedStore.start();
    const { server, key } = served;
    using idle = await RawConnection.open(server.port);
    await idle.send(HEALTH);
    assertEquals((await idle.receive())?.status, 200);
    using connection = await RawConnection.open(server.port);
    const body = await beginToAdd(connection, key);

    server.signal(signal);
    await untilStopping(server);
    server.signal(signal);
    await connection.send(body);
    const answer = await connection.receive();
    const { code, errorLines, records } = await server.ended();

    assertEquals([answer?.status, answer?.body], [201, itemWith(1)]);
    assertEquals([code, await idle.receiveRest()], [0, ""]);
    const isUsual = (line: string) => ["Listening on", TITLE].some((start) => line.startsWith(`${start} `));
    assertEquals(errorLines.map(isUsual), [true, true]);
    assertEquals(records.map(({ event, reason }) => [event, reason]), [["stop", signal]]);
  },
);

Deno.test("server answers 503 and Connection: close while it stops, on connections old and new, until no request comes", async () => {
  await using served = await ServedStore.start();
  const { server, key } = served;
  using old = await RawConnection.open(server.port);
  await old.send(HEALTH);
  assertEquals((await old.receive())?.headers.get("connection"), null);

  server.signal("SIGTERM");
  await untilStopping(server);
  const list = rawRequest(LIST, { authorization: `Bearer ${key}` });
  await old.send(list);
  const answers = [await old.receive()];
  answers.push(await exchange(server, list), await exchange(server, HEALTH));
  const { code } = await server.ended();

  const seen = answers.map((answer) => [answer?.status, answer?.headers.get("connection")]);
  assertEquals(seen, [[503, "close"], [503, "close"], [200, "close"]]);
  assertEquals([code, await old.receiveRest()], [0, ""]);
});

Deno.test("server gives the place of a request that waits for changes to others once its connection is closed, and answers all at its stop", async () => {
  await using served = await ServedStore.start({ variables: { OPERATOR_TOKEN } });
  const { server, key } = served;
  const on = await server.fetch("PUT /operator/v1/changes", { key: OPERATOR_TOKEN, json: { days: 1 } });
  assertEquals((await on.json()).days, 1);
  const { cursor } = await (await server.fetch("GET /v1/changes", { key })).json();
  const wait = () => {
    const closing = new AbortController();
    const target = `GET /v1/changes?after=${cursor}&wait=20`;
    const response = server.fetch(target, { key, signal: closing.signal });
    const status = response.then(async (response) => (await response.text(), response.status), () => 0);
    return { closing, status };
  };
  const readers = Array.from({ length: 11 }, wait);
  const refused = await Promise.race(readers.map(async (reader) => (await reader.status, reader)));
  assertEquals(await refused.status, 503);

  const [closed, ...waiting] = readers.filter((reader) => reader !== refused);
  closed?.closing.abort();
  assertEquals(await closed?.status, 0);
  let next = wait();
  while (await Promise.race([next.status, pause(200)])) next = wait();
  const stopped = server.stop();

  const statuses = await Promise.all([...waiting, next].map(({ status }) => status));
  assertEquals(new Set(statuses), new Set([200]));
  const { code, errorLines } = await stopped;
  assertEquals([code, errorLines.filter((line) => line.startsWith("Deno.serve"))], [0, []]);
});

Deno.test("server exits 130 immediately when Ctrl-C is typed again", async () => {
  await using served = await ServedStore.start();
  const { server } = served;
  using connection = await RawConnection.open(server.port);
  await beginToAdd(connection, served.key);
  const typing = setInterval(() => server.signal("SIGINT"), 50);

  const { code } = await server.ended();

  clearInterval(typing);
  assertEquals(code, 130);
});

Deno.test("server exits 0 even if a client never completes its body", async () => {
  await using served = await ServedStore.start();
  const { server, key } = served;
  using connection = await RawConnection.open(server.port);
  await beginToAdd(connection, key);

  server.signal("SIGTERM");

  assertEquals((await connection.receive())?.status, 503);
  assertEquals((await server.ended()).code, 0);
});

Deno.test.each<[what: string, Deno.Signal]>([["an error", "SIGUSR1"], ["a rejection", "SIGUSR2"]])(
  "server logs %s that nobody handles in one line, without its message, stops as for SIGTERM and exits 1",
  async (_, signal) => {
    const runtime = ["--preload", "tests/process/unhandled.ts"];
    await using store = await TemporaryStore.create();
    await using server = await store.serve({ ENVIRONMENT: "production" }, { runtime });
    using connection = await RawConnection.open(server.port);
    await connection.send(HEALTH);
    assertEquals((await connection.receive())?.status, 200);

    server.signal(signal);
    await untilStopping(server);
    await connection.send(rawRequest(LIST));
    const answer = await connection.receive();
    const { code, records: [error, stop, ...more] } = await server.ended();

    assertEquals([answer?.status, answer?.headers.get("connection")], [503, "close"]);
    assertEquals([error?.["route"], error?.["error"]], ["unhandled", "TypeError"]);
    assertMatch(`${error?.["stack"]}`, /^ {4}at .+tests\/process\/unhandled\.ts:\d+:\d+/);
    assertEquals([stop?.["event"], stop?.["reason"], more], ["stop", "unhandled", []]);
    assertEquals([code, /Uncaught|data of/.test(server.stderr.text)], [1, false]);
  },
);

Deno.test("server settles its leases when it stops", () =>
  inOneDay(async () => {
    await using served = await ServedStore.start();
    const { server, store, account } = served;
    assertEquals(tally(await callAtOnce(200, [server], account.key, LIST)), { 200: 200 });

    await server.stop();

    const { usedToday, leased, leasedToday } = await store.usageOf(account);
    assertEquals([usedToday, leased, leasedToday], [200, 0, 0]);
  }));

Deno.test.each<[what: string, Deno.Signal, ProcessOptions]>([
  ["SIGTERM", "SIGTERM", IN_HASTE],
  ["an error that nobody handles", "SIGUSR1", {
    runtime: ["--preload", "tests/process/haste.ts", "--preload", "tests/process/unhandled.ts"],
  }],
])("server responds while nobody reads its log, and then exits 1 after %s", async (_, signal, process) => {
  await using served = await ServedStore.start({ variables: { ACCESS_LOG: "json" }, process });
  const { server } = served;
  server.stdout.pause();
  using connection = await RawConnection.open(server.port);
  const request = rawRequest("GET /health", { "x-request-id": "x".repeat(64) });
  for (let sent = 0; sent < REQUESTS; sent += AT_ONCE) {
    await connection.send(request.repeat(AT_ONCE));
    for (let received = 0; received < AT_ONCE; received++) {
      assertEquals((await connection.receive())?.status, 200);
    }
  }

  server.signal(signal);

  assertEquals((await server.ended()).code, 1);
});

Deno.test("server logs one line when it runs out of open files, and accepts connections again later", async () => {
  await using served = await ServedStore.start({ process: { openFiles: 128 } });
  const { server, key } = served;
  using first = await RawConnection.open(server.port);
  await first.send(HEALTH);
  assertEquals((await first.receive())?.status, 200);
  {
    using crowd = new DisposableStack();
    while (await canOpen(server.port, crowd));
    await first.send(rawRequest(LIST, { authorization: `Bearer ${key}` }));
    assertEquals((await first.receive())?.status, 200, server.stderr.text);
  }

  using later = new DisposableStack();
  while (!await canOpen(server.port, later)) await pause(50);
  assertEquals((await call(server, key, LIST)).status, 200);
  const { code, records } = await server.stop();

  assertEquals(code, 0);
  assertEquals(records.map(({ route, event }) => route ?? event), ["accept", "stop"]);
});

/** Opens a connection. Until it responds, it might only be in the listener's queue. */
async function canOpen(port: number, connections: DisposableStack): Promise<boolean> {
  try {
    const connection = connections.use(await RawConnection.open(port));
    await connection.send(HEALTH);
    return await connection.receive() !== undefined;
  } catch {
    return false; // When a listener is closed, connections in its queue are refused or reset.
  }
}

/** What happens to the store's files, and how the log begins to say so. */
const LOSSES: readonly {
  readonly name: string;
  readonly lose: (store: TemporaryStore) => Promise<void>;
  readonly reason: RegExp;
}[] = [
  {
    name: "is removed",
    lose: ({ kvPath }) => Deno.remove(kvPath),
    reason: /"reason":"The KV file was removed or renamed; stop the service with SIGTERM, /,
  },
  {
    name: "is renamed",
    lose: ({ kvPath }) => Deno.rename(kvPath, `${kvPath}.old`),
    reason: /"reason":"The KV file was removed or renamed; /,
  },
  {
    name: "is replaced",
    async lose({ kvPath }) {
      await Deno.copyFile(kvPath, `${kvPath}.new`);
      await Deno.rename(`${kvPath}.new`, kvPath);
    },
    reason: /"reason":"The KV file was removed or replaced; /,
  },
  {
    name: "loses its -wal",
    lose: ({ kvPath }) => Deno.remove(`${kvPath}-wal`),
    reason: /"reason":"The file -wal of the KV was removed or replaced; /,
  },
  {
    name: "loses its -shm",
    lose: ({ kvPath }) => Deno.remove(`${kvPath}-shm`),
    reason: /"reason":"The file -shm of the KV was removed or replaced; /,
  },
];

for (const { name, lose, reason } of LOSSES) {
  Deno.test(`server refuses writes once its KV file ${name}`, async () => {
    await using served = await ServedStore.start();
    const { server, key, store } = served;
    assertEquals((await addItem(server, key)).status, 201);

    await lose(store);
    await server.wrote("stderr", reason);

    assertEquals(outcome(await addItem(server, key)), "503 store_unavailable");
    // It probes the store once a second.
    while ((await call(server, undefined, "GET /ready")).status === 200) await pause(50);
    assertEquals(outcome(await call(server, undefined, "GET /ready")), "503 store_unavailable");
    assertEquals((await server.stop()).code, 0);
  });
}

Deno.test("server saves at its stop what it acknowledged before its -wal was removed", async () => {
  await using served = await ServedStore.start();
  const { server, key, store } = served;
  const id = idIn((await addItem(server, key)).json);
  await Deno.remove(`${store.kvPath}-wal`);
  await server.wrote("stderr", /"reason":"The file -wal /);

  await server.stop();

  await using next = await store.serve();
  assertEquals(await listIds(next, key), [id]);
});

/** Sends the head of a request that adds an item. Resolves to its body once the server asks for it. */
async function beginToAdd(connection: RawConnection, key: string): Promise<string> {
  const headers = { ...jsonHeaders(key), "content-length": `${ITEM.length}`, expect: "100-continue" };
  await connection.send(rawRequest(`POST ${PATH}`, headers));
  assertEquals((await connection.receive())?.status, 100);
  return ITEM;
}

/** Waits until the server accepts no new requests: it refuses connections, or returns 503. */
async function untilStopping(server: ServerProcess): Promise<void> {
  const isReady = () =>
    exchange(server, rawRequest("GET /ready")).then(({ status }) => status !== 503, () => false);
  while (await isReady());
}
