import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { OpenError, type OpenOptions, openStore } from "../../../src/engine/open.ts";
import { reopener, waitForServer } from "../../../src/engine/remote/open.ts";
import { Transactions } from "../../../src/engine/transactions.ts";
import { ConnectServer } from "../../process/process.ts";
import { calmNetwork, fail, FakeKv, hang, type Network } from "../../support/fake_kv.ts";
import { VirtualTime } from "../../support/time.ts";
import { countingAll, upTo } from "../process.ts";
import { Connection } from "../../../src/engine/remote/connection.ts";
import { DeadlineExceeded, StoreUnavailable } from "../../../src/engine/deadline.ts";

const OPTIONS: OpenOptions = { clock: Date.now, create: true };
const URL_OF_SERVER = "http://127.0.0.1:1/";
const { signal } = new AbortController();

/** A server in virtual time. It counts probes, and handles that are opened and closed. */
class FakeServer implements AsyncDisposable {
  readonly time: VirtualTime = new VirtualTime();
  probes = 0;
  openings = 0;
  closed = 0;
  readonly network: Network = calmNetwork();
  /** What happens to a probe, and to an opening, before the response. */
  onProbe: () => unknown = () => {};
  onOpen: () => unknown = () => {};
  readonly #fetch: typeof fetch = fetch;
  readonly #openKv: PropertyDescriptor = Object.getOwnPropertyDescriptor(Deno, "openKv") ?? {};

  constructor() {
    const kv = new FakeKv();
    const probe = async (_: string, { signal }: { signal: AbortSignal }) => {
      this.probes++;
      const aborted = new Promise((_, reject) => signal.addEventListener("abort", reject));
      await Promise.race([this.onProbe(), aborted]);
      return new Response();
    };
    const openKv = async () => {
      this.openings++;
      await this.onOpen();
      return Object.assign(kv.connect(this.network), { close: () => void this.closed++ });
    };
    Object.assign(globalThis, { fetch: probe });
    Object.defineProperty(Deno, "openKv", { configurable: true, value: openKv });
  }

  /** Reopens `count` handles, which may take up to `ms`. */
  async reopen(count: number, ms: number): Promise<number> {
    return (await this.time.until(reopener(URL_OF_SERVER, count)(signal), ms)).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    Object.assign(globalThis, { fetch: this.#fetch });
    Object.defineProperty(Deno, "openKv", this.#openKv);
    await this.time[Symbol.asyncDispose]();
  }
}

function refuse(): never {
  throw new TypeError("503");
}

Deno.test("waitForServer() repeats a probe that gets no response every half a second", async () => {
  await using server = new FakeServer();
  server.onProbe = () => server.probes < 3 && new Promise(() => {});

  await server.time.until(waitForServer(URL_OF_SERVER, signal), 2_000);

  assertEquals([server.probes, server.time.now], [3, 1_000]);
});

Deno.test("reopener() opens all handles or none and retries", async () => {
  await using server = new FakeServer();
  server.onOpen = () => server.openings === 2 && refuse();

  assertEquals([await server.reopen(3, 1_000), server.openings, server.closed], [3, 6, 2]);
});

Deno.test("reopener() lets at most two openings per handle hang and continues when they end", async () => {
  await using server = new FakeServer();
  const end = Promise.withResolvers<void>();
  server.onOpen = () => end.promise;

  const reopening = server.reopen(4, 60_000);
  await server.time.advance(25_000);
  assertEquals(server.openings, 8);
  end.resolve();

  assertEquals([await reopening, server.openings, server.closed], [4, 12, 8]);
});

Deno.test("reopener() starts further openings after half a minute if the first ones hang forever", async () => {
  await using server = new FakeServer();
  server.onOpen = () => server.openings <= 2 && new Promise(() => {});

  assertEquals([await server.reopen(1, 45_000), server.openings], [1, 3]);
  assert(server.time.now > 34_000, `${server.time.now}`);
  await server.time.advance(30_000);
});

Deno.test("reopener() rejects when its signal aborts, whether it probes or waits", async () => {
  await using server = new FakeServer();
  for (const [onProbe, onOpen] of [[() => {}, refuse], [() => new Promise(() => {}), () => {}]] as const) {
    Object.assign(server, { onProbe, onOpen });
    const stop = new AbortController();
    const reopening = reopener(URL_OF_SERVER, 1)(stop.signal);
    await server.time.advance(100);
    stop.abort(new RangeError("enough"));

    await assertRejects(() => server.time.until(reopening, 1_000), RangeError, "enough");
  }
});

Deno.test("openStore() retries each handle that fails to open, up to twice", async () => {
  await using server = new FakeServer();
  const opening = () => server.time.until(openStore(URL_OF_SERVER, OPTIONS), 1_000);
  server.onOpen = () => [1, 2, 13].includes(server.openings) && refuse();

  const store = await opening();
  await store.close();
  assertEquals([server.openings, server.closed], [15, 12]);

  server.onOpen = refuse;
  await assertRejects(opening, OpenError, "503");
  assertEquals(server.openings, 15 + 3 * 12);
});

Deno.test("openStore() refuses a KV in which no row can be written, and closes its handles", async () => {
  await using server = new FakeServer();
  const opening = () => server.time.until(openStore(URL_OF_SERVER, OPTIONS), 1_000);
  const store = await opening();
  await store.close();
  server.network.commit = fail;

  await assertRejects(opening, OpenError, "disk I/O error");

  assertEquals([server.openings, server.closed], [24, 24]);
});

Deno.test("openStore() gives up on a server that responds but does not open its KV", async () => {
  await using server = new FakeServer();
  const end = Promise.withResolvers<void>();
  server.onOpen = () => server.openings > 5 && end.promise;

  const opening = openStore(URL_OF_SERVER, OPTIONS);
  await assertRejects(() => server.time.until(opening, 6_000), OpenError, "No response within");
  assertEquals(server.closed, 5);
  end.resolve();
  await server.time.advance(0);

  assertEquals([server.openings, server.closed], [12, 12]);
});

function serve(handler: Deno.ServeHandler): Deno.HttpServer<Deno.NetAddr> {
  return Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, handler);
}

Deno.test("openStore() explains in one line, without secrets, why a server's KV cannot be used", async () => {
  Deno.env.set("DENO_KV_ACCESS_TOKEN", "any token will do");
  await using server = serve(() => new Response("No.\nStack backtrace:\n  0: main", { status: 403 }));
  const host = `127.0.0.1:${server.addr.port}`;
  const patience = { ms: 100, onWait: () => {} };
  for (
    const [url, options, reason] of [
      [`http://${host}/`, OPTIONS, "403"],
      [`http://user:password@${host}/`, { ...OPTIONS, patience: { ...patience, ms: 5_000 } }, "403"],
      ["http://user:password@127.0.0.1:1/", OPTIONS, ""],
      ["http://user:pass word@127.0.0.1:1/", OPTIONS, ""],
      ["http://127.0.0.1:1/", { ...OPTIONS, patience }, "it did not respond for 0.1 s"],
    ] as const
  ) {
    const { message } = await assertRejects(() => openStore(url, options), OpenError, reason);

    assertStringIncludes(message, `The KV ${new URL(url).host} cannot be used: `);
    assertEquals(/\n|pass.*word|backtrace/.test(message), false, message);
  }
});

Deno.test("openStore() opens a path or `:memory:` as a file, and a URL or Deploy's KV as a server, all for eight rows", async () => {
  await using server = await ConnectServer.start();
  const folder = await Deno.makeTempDir();
  Deno.env.set("DENO_KV_DEFAULT_PATH", server.url);
  const { close } = Deno.Kv.prototype;
  let closed = 0;
  Deno.Kv.prototype.close = function () {
    closed++;
    close.call(this);
  };
  const transaction = countingAll(upTo(8).map((row) => ["row", row]));

  const found: unknown[] = [];
  for (const path of [`${folder}/things.kv`, ":memory:", server.url, undefined]) {
    closed = 0;
    const store = await openStore(path, OPTIONS);
    const transactions = new Transactions(store, Date.now);
    const { result, rows } = await transactions.run(transaction);
    // The second one knows an old version, so that its commit is refused.
    await transactions.run(transaction);
    const { result: [last] } = await transactions.run({ ...transaction, reads: rows });
    await store.close();
    found.push([store.lanes > 1, store.maxChecks, closed, result[0], last]);
  }
  Deno.Kv.prototype.close = close;

  assertEquals(found, [[false, 99, 2, 0, 2], [false, 99, 1, 0, 2], [true, 8, 12, 0, 2], [true, 8, 1, 3, 5]]);
  Deno.env.delete("DENO_KV_DEFAULT_PATH");
  await Deno.remove(folder, { recursive: true });
});

const KINDS = ["read", "write"] as const;
const DEADLINE = 100;

/** A connection whose handles have names, in virtual time, and a record of what it does with them. */
class Fixture implements AsyncDisposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly connection: Connection;
  readonly closed: string[] = [];
  /** The handles that `reopen` returns, and the number of its calls. */
  reopened: PromiseWithResolvers<Deno.Kv[]> = Promise.withResolvers();
  reopenings = 0;
  readonly #names: Map<Deno.Kv, string> = new Map();
  readonly #end: PromiseWithResolvers<void> = Promise.withResolvers();

  /** With `ignoresSignal`, handles that are being opened are not abandoned when the connection closes. */
  constructor(names = "ab", { ignoresSignal = false } = {}) {
    const reopen = (signal: AbortSignal) => {
      signal.throwIfAborted();
      this.reopenings++;
      this.reopened = Promise.withResolvers();
      if (!ignoresSignal) signal.addEventListener("abort", () => this.reopened.reject(signal.reason));
      return this.reopened.promise;
    };
    this.connection = new Connection(this.open(names), { deadline: DEADLINE, reopen });
  }

  /** Opens a handle for each letter. */
  open(names: string): Deno.Kv[] {
    return [...names].map((name) => {
      const close = () => this.closed.push(name);
      const kv: Deno.Kv = Object.assign(Object.create(Deno.Kv.prototype), { close });
      this.#names.set(kv, name);
      return kv;
    });
  }

  /** Lets `reopen` return new handles. */
  async replace(names = "ab"): Promise<void> {
    this.reopened.resolve(this.open(names));
    await this.time.advance(0);
  }

  /** Starts an operation, which ends on demand, or with the test. `on` is the name of its handle. */
  start(kind: typeof KINDS[number] = "read"): { on: string; end: () => void; ended: Promise<void> } {
    const { promise, resolve } = Promise.withResolvers<void>();
    let on = "";
    const ended = this.connection.run(kind, (kv) => {
      on = this.#names.get(kv) ?? "";
      return Promise.race([promise, this.#end.promise]);
    });
    ended.catch(() => {});
    return { on, end: resolve, ended };
  }

  /** The names of the handles of `count` operations, in order. */
  handlesOf(kind: typeof KINDS[number], count: number): string {
    return Array.from({ length: count }, () => this.start(kind).on).join("");
  }

  /** Runs an operation that fails on one handle, or on all. Returns the name of its handle. */
  async attempt(failsOn?: string): Promise<string> {
    let on = "";
    const attempt = this.connection.run("read", (kv) => {
      on = this.#names.get(kv) ?? "";
      return failsOn === undefined || on === failsOn ? fail() : Promise.resolve();
    });
    await attempt.catch(() => {});
    return on;
  }

  /** Replaces the handles `count` times, because of operations that hang. Returns these operations. */
  async lose(count: number): Promise<{ end: () => void }[]> {
    const lost: { end: () => void }[] = [];
    for (; count > 0; count--) {
      lost.push(this.start());
      await this.time.advance(DEADLINE);
      await this.replace();
    }
    return lost;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.resolve();
    await this.time[Symbol.asyncDispose]();
  }
}

Deno.test("Connection uses the least busy handle", async () => {
  await using fixture = new Fixture("abc");
  assertEquals(fixture.handlesOf("read", 3) + fixture.handlesOf("write", 2), "abcab");
  const last = fixture.start();
  assertEquals(last.on, "c");
  last.end();
  await last.ended;
  assertEquals(fixture.handlesOf("write", 1), "c");
});

Deno.test("Connection rejects operations after a missed deadline until it has new handles", async () => {
  await using fixture = new Fixture();
  const { connection, time } = fixture;
  fixture.start("read");
  fixture.start("write");
  await time.advance(DEADLINE / 2);
  const young = fixture.start();
  await time.advance(DEADLINE / 2);

  for (const kind of KINDS) {
    await assertRejects(() => connection.run(kind, hang), StoreUnavailable, "does not respond");
  }
  await time.advance(10 * DEADLINE);
  assertEquals(fixture.handlesOf("read", 2), "");
  assertEquals([fixture.closed, fixture.reopenings], [[], 1]);

  await fixture.replace("cd");
  assertEquals(fixture.handlesOf("read", 2) + fixture.handlesOf("write", 1), "cdc");
  assertEquals(fixture.closed, ["a", "b"]);
  await assertRejects(() => young.ended, DeadlineExceeded);
});

Deno.test("Connection avoids a handle for a second after a failure if there are others", async () => {
  await using fixture = new Fixture();
  const attempt = () => fixture.attempt("a");

  assertEquals([await attempt(), await attempt(), await attempt()], ["a", "b", "b"]);
  await fixture.time.advance(999);
  assertEquals(await attempt(), "b");
  await fixture.time.advance(1);
  assertEquals([await attempt(), await attempt()], ["a", "b"]);
});

Deno.test.each([["fails", undefined, 1], ["succeeds", "none", 0]] as const)(
  "Connection replaces its handles if one does nothing but fail for two deadlines: one in between %s",
  async (_, failsOn, reopenings) => {
    await using fixture = new Fixture("a");
    await fixture.attempt();
    await fixture.time.advance(2 * DEADLINE);
    await fixture.attempt(failsOn);
    assertEquals(fixture.reopenings, 0);
    await fixture.time.advance(1);
    await fixture.attempt();

    assertEquals(fixture.reopenings, reopenings);
    assertEquals(fixture.handlesOf("read", 1), "a", "It is used until there are others");
    if (reopenings === 0) return;
    await fixture.replace("b");
    assertEquals([fixture.handlesOf("read", 1), fixture.closed], ["b", ["a"]]);
  },
);

Deno.test("Connection does not replace new handles because of an operation of old ones", async () => {
  await using fixture = new Fixture();
  fixture.start();
  await fixture.time.advance(DEADLINE - 1);
  fixture.start();
  await fixture.time.advance(1);
  await fixture.replace();

  await fixture.time.advance(DEADLINE);

  assertEquals(fixture.reopenings, 1);
});

Deno.test("Connection delays new handles for half a minute while eight generations hang", async () => {
  await using fixture = new Fixture();
  const { time } = fixture;
  const lost = await fixture.lose(8);
  for (const [reopenings, { end }] of [...lost.slice(3, 5).entries()]) {
    fixture.start();
    await time.advance(10_000);
    assertEquals(fixture.reopenings, 8 + reopenings);

    end();
    await time.advance(500);
    assertEquals(fixture.reopenings, 9 + reopenings);
    await fixture.replace();
  }
  fixture.start();
  await time.advance(DEADLINE + 29_000);
  assertEquals(fixture.reopenings, 10);
  await time.advance(1_500);
  assertEquals(fixture.reopenings, 11);
});

Deno.test("Connection.close() also closes handles that are still being opened", async () => {
  await using fixture = new Fixture("ab", { ignoresSignal: true });
  fixture.start();
  await fixture.time.advance(DEADLINE);

  const closing = fixture.connection.close();
  await fixture.replace("cd");
  await closing;

  assertEquals(fixture.closed, ["a", "b", "c", "d"]);
});
