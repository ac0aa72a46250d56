import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { OpenError, type OpenOptions, openStore } from "../../../src/engine/open.ts";
import { reopener, waitForServer } from "../../../src/engine/remote/open.ts";
import { Transactions } from "../../../src/engine/transactions.ts";
import { ConnectServer } from "../../process/process.ts";
import { FakeKv } from "../../support/fake_kv.ts";
import { VirtualTime } from "../../support/time.ts";
import { countingAll, upTo } from "../process.ts";

const OPTIONS: OpenOptions = { clock: Date.now, create: true };
const URL_OF_SERVER = "http://127.0.0.1:1/";
const { signal } = new AbortController();

/** A server in virtual time. It counts probes, and handles that are opened and closed. */
class FakeServer implements Disposable {
  readonly time: VirtualTime = new VirtualTime();
  probes = 0;
  openings = 0;
  closed = 0;
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
      return Object.assign(kv.connect(), { close: () => void this.closed++ });
    };
    Object.assign(globalThis, { fetch: probe });
    Object.defineProperty(Deno, "openKv", { configurable: true, value: openKv });
  }

  /** Reopens `count` handles, which may take up to `ms`. */
  async reopen(count: number, ms: number): Promise<number> {
    return (await this.time.until(reopener(URL_OF_SERVER, count)(signal), ms)).length;
  }

  [Symbol.dispose](): void {
    Object.assign(globalThis, { fetch: this.#fetch });
    Object.defineProperty(Deno, "openKv", this.#openKv);
    this.time[Symbol.dispose]();
  }
}

function refuse(): never {
  throw new TypeError("503");
}

Deno.test("waitForServer() repeats a probe that gets no response every half a second", async () => {
  using server = new FakeServer();
  server.onProbe = () => server.probes < 3 && new Promise(() => {});

  await server.time.until(waitForServer(URL_OF_SERVER, signal), 2_000);

  assertEquals([server.probes, server.time.now], [3, 1_000]);
});

Deno.test("reopener() opens all handles or none and retries", async () => {
  using server = new FakeServer();
  server.onOpen = () => server.openings === 2 && refuse();

  assertEquals([await server.reopen(3, 1_000), server.openings, server.closed], [3, 6, 2]);
});

Deno.test("reopener() lets at most two openings per handle hang and continues when they end", async () => {
  using server = new FakeServer();
  const end = Promise.withResolvers<void>();
  server.onOpen = () => end.promise;

  const reopening = server.reopen(4, 60_000);
  await server.time.advance(25_000);
  assertEquals(server.openings, 8);
  end.resolve();

  assertEquals([await reopening, server.openings, server.closed], [4, 12, 8]);
});

Deno.test("reopener() starts further openings after half a minute if the first ones hang forever", async () => {
  using server = new FakeServer();
  server.onOpen = () => server.openings <= 2 && new Promise(() => {});

  assertEquals([await server.reopen(1, 45_000), server.openings], [1, 3]);
  assert(server.time.now > 34_000, `${server.time.now}`);
});

Deno.test("reopener() rejects when its signal aborts, whether it probes or waits", async () => {
  using server = new FakeServer();
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
  using server = new FakeServer();
  const opening = () => server.time.until(openStore(URL_OF_SERVER, OPTIONS), 1_000);
  server.onOpen = () => [1, 2, 13].includes(server.openings) && refuse();

  const store = await opening();
  await store.close();
  assertEquals([server.openings, server.closed], [15, 12]);

  server.onOpen = refuse;
  await assertRejects(opening, OpenError, "503");
  assertEquals(server.openings, 15 + 3 * 12);
});

Deno.test("openStore() gives up on a server that responds but does not open its KV", async () => {
  using server = new FakeServer();
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
    const transactions = new Transactions(store, { clock: Date.now });
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
