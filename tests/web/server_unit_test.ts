import { assertEquals, assertLess, assertRejects, assertThrows } from "@std/assert";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ConcurrencyLimit, Semaphore } from "../../src/web/concurrency.ts";
import { ApiError } from "../../src/web/error.ts";
import { Server, type ServerHandler, uncompressed } from "../../src/web/server.ts";
import { upTo } from "../support/client.ts";
import { VirtualTime } from "../support/time.ts";

const EXHAUSTED = new Error("Too many open files");

/** Replaces `Deno.serve` in virtual time. Its servers stop accepting connections on demand. */
class FakeServe implements AsyncDisposable {
  readonly time: VirtualTime = new VirtualTime();
  /** The servers that were started. */
  readonly servers: {
    readonly port: number;
    readonly handler: ServerHandler;
    readonly exhaust: () => void;
    readonly end: () => void;
    /** How often it was told to end. */
    shutdowns: number;
  }[] = [];
  /** If set, listening throws it. */
  failure: Error | undefined;
  /** Where its servers listen. */
  address: Deno.Addr = { transport: "tcp", hostname: "127.0.0.1", port: 4711 };
  readonly #original = Deno.serve;

  constructor() {
    const serve = (
      { port = NaN, hostname, automaticCompression }: Deno.ServeTcpOptions,
      given: ServerHandler,
    ) => {
      if (this.failure) throw this.failure;
      assertEquals([hostname, automaticCompression], ["127.0.0.1", false]);
      const [finished, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const exhaust = () => finished.reject(EXHAUSTED);
      const server = { port, handler: given, exhaust, end: ended.resolve, shutdowns: 0 };
      this.servers.push(server);
      const shutdown = () => (server.shutdowns++, ended.promise);
      return { addr: this.address, finished: finished.promise, shutdown };
    };
    Object.assign(Deno, { serve });
  }

  /** Starts the server, and collects the failures that it reports. */
  start(failures: unknown[] = []): Server {
    const onFailure = (error: unknown) => void failures.push(error);
    return new Server({ port: 0, hostname: "127.0.0.1", onFailure }, handler);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    Object.assign(Deno, { serve: this.#original });
    await this.time[Symbol.asyncDispose]();
  }
}

const RESPONSE = new Response();
const REMOTE: Deno.NetAddr = { transport: "tcp", hostname: "127.0.0.1", port: 1 };
const INFO = { remoteAddr: REMOTE, completed: Promise.resolve() };

function handler(): Response {
  return RESPONSE;
}

Deno.test("Server listens on its port again after a failure, retries, and reports the failure once", async () => {
  await using fake = new FakeServe();
  const failures: unknown[] = [];
  fake.start(failures);

  fake.servers[0]?.exhaust();
  await fake.time.advance(999);
  assertEquals(fake.servers.length, 1);
  fake.failure = new Deno.errors.AddrInUse();
  await fake.time.advance(120_000);
  fake.failure = undefined;
  await fake.time.advance(1_000);
  fake.servers[1]?.exhaust();
  await fake.time.advance(59_000);
  assertEquals([fake.servers.length, failures], [3, [EXHAUSTED]]);
  await fake.time.advance(2_000);
  fake.servers[2]?.exhaust();
  await fake.time.advance(1_000);

  assertEquals(failures, [EXHAUSTED, EXHAUSTED]);
  assertEquals(fake.servers.map((server) => server.port), [0, 4711, 4711, 4711]);
  const responses = fake.servers.map((server) => server.handler(new Request("http://localhost/"), INFO));
  assertEquals(new Set(responses), new Set([RESPONSE]));
});

Deno.test("Server ends after a failure at a Unix socket, where no other can listen", async () => {
  await using fake = new FakeServe();
  fake.address = { transport: "unix", path: "/run/things.sock" };
  const failures: unknown[] = [];
  const server = fake.start(failures);

  fake.servers[0]?.exhaust();

  assertEquals(await server.ended, true);
  await fake.time.advance(10_000);
  assertEquals([fake.servers.length, failures], [1, [EXHAUSTED]]);
});

Deno.test.each<[string, Error, string[]]>([
  ["::", new Error("Address family not supported by protocol"), ["::", "0.0.0.0"]],
  ["::", new Deno.errors.AddrInUse(), ["::"]],
  ["::1", new Error("Cannot assign requested address"), ["::1"]],
])("Server at %s tries after %s: %j", async (hostname, failure, expected) => {
  await using _fake = new FakeServe();
  const tried: unknown[] = [];
  const serve = ({ hostname }: Deno.ServeTcpOptions) => {
    tried.push(hostname);
    throw failure;
  };
  Object.assign(Deno, { serve });

  assertThrows(() => new Server({ port: 0, hostname, onFailure() {} }, handler), Error, failure.message);

  assertEquals(tried, expected);
});

Deno.test("Server.stop() waits for the connections of every server, and starts no other", async () => {
  await using fake = new FakeServe();
  const server = fake.start();
  fake.servers[0]?.exhaust();
  await fake.time.advance(1_000);
  fake.servers[1]?.exhaust();
  let stopped = false;

  server.stop().then(() => stopped = true);
  fake.servers[1]?.end();
  await fake.time.advance(10_000);
  assertEquals([stopped, fake.servers.length], [false, 2]);
  fake.servers[0]?.end();
  await fake.time.advance(0);

  assertEquals(stopped, true);
});

Deno.test("Server keeps the connections of the last ten servers that failed, and forgets those that have ended", async () => {
  await using fake = new FakeServe();
  const server = fake.start();
  for (let failed = 0; failed < 12; failed++) {
    fake.servers[failed]?.exhaust();
    await fake.time.advance(1_000);
  }
  assertEquals(fake.servers.map(({ shutdowns }) => shutdowns), [1, 1, ...Array(11).fill(0)]);

  for (const { end } of fake.servers) end();
  await fake.time.advance(0);
  await server.stop();

  assertEquals(fake.servers.map(({ shutdowns }) => shutdowns), Array(13).fill(1));
});

Deno.test("uncompressed() adds no-transform to the directives of Cache-Control", async () => {
  for (
    const [own, all] of [[{}, ""], [{ "cache-control": "private, no-cache" }, "private, no-cache, "]] as const
  ) {
    const handler: ServerHandler = () => Promise.resolve(new Response("", { headers: own }));
    const { headers } = await uncompressed(handler)(new Request("http://localhost/"), INFO);
    assertEquals(headers.get("cache-control"), `${all}no-transform`);
  }
});

setFlagsFromString("--expose-gc");

/** Size of all objects that are in use, in bytes. */
function heapInUse(): number {
  runInNewContext("gc")();
  return Deno.memoryUsage().heapUsed;
}

Deno.test("ConcurrencyLimit keeps nothing of owners whose tasks have ended", async () => {
  const owners = upTo(10_000);
  const limit = new ConcurrencyLimit(owners.length, "tasks");
  const before = heapInUse();

  await Promise.all(owners.map((owner) => limit.run(() => Promise.resolve(), `${owner}`.padEnd(1_000))));

  assertLess(heapInUse() - before, 2_500_000); // The names have 10 MB.
});

/** A task that ends when a test says so. */
class Task {
  readonly #end: PromiseWithResolvers<void> = Promise.withResolvers();
  begun = false;

  readonly work = () => {
    this.begun = true;
    return this.#end.promise;
  };

  readonly end = () => this.#end.resolve();
}

Deno.test("Semaphore starts waiting tasks in their order, and refuses those that wait too long or are too many", async () => {
  await using time = new VirtualTime();
  const semaphore = new Semaphore({ capacity: 2, maxWaiting: 3, maxWaitMs: 5_000, what: "tasks" });
  const tasks = upTo(6).map(() => new Task());
  const begun = () => tasks.flatMap((task, number) => task.begun ? [number] : []);

  const runs = tasks.map(({ work }) => semaphore.run(work));
  runs.forEach((run) => run.catch(() => {}));

  await assertRejects(async () => await runs[5], ApiError, "Too many tasks.");
  assertEquals(begun(), [0, 1]);
  tasks[1]?.end();
  await runs[1];
  await time.advance(4_999);
  assertEquals(begun(), [0, 1, 2]);
  await time.advance(1);
  for (const late of [3, 4]) await assertRejects(async () => await runs[late], ApiError, "Too many tasks.");
  tasks[0]?.end();
  tasks[2]?.end();
  await Promise.all([runs[0], runs[2]]);
  assertEquals(begun(), [0, 1, 2]);
  // A task that fails gives its place back, too.
  await assertRejects(() => semaphore.run(() => Promise.reject(new Error("failed"))), Error, "failed");
  assertEquals(
    await Promise.all(upTo(4).map((number) => semaphore.run(() => Promise.resolve(number)))),
    upTo(4),
  );
});
