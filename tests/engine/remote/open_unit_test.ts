import { assert, assertEquals, assertRejects, assertStringIncludes } from "@std/assert";
import { OpenError, type OpenOptions, openStore } from "../../../src/engine/open.ts";
import { reopener, waitForServer } from "../../../src/engine/remote/open.ts";
import { encodeJson } from "../../../src/engine/row.ts";
import type { Transaction } from "../../../src/engine/transaction.ts";
import { Transactions } from "../../../src/engine/transactions.ts";
import { ConnectServer } from "../../process/process.ts";
import { numberIn, upTo } from "../process.ts";

const OPTIONS: OpenOptions = { clock: Date.now, create: true };
const AT_ONCE: Deno.ServeTcpOptions = { hostname: "127.0.0.1", port: 0, onListen: () => {} };

/** In ms. A test that waits for something that never happens fails. */
const timeout = 30_000;

/** Makes timers run 20 times as fast. */
function hastened(): Disposable {
  const { setTimeout } = globalThis;
  Object.assign(globalThis, {
    setTimeout: (callback: () => void, ms: number) => setTimeout(callback, ms / 20),
  });
  return { [Symbol.dispose]: () => Object.assign(globalThis, { setTimeout }) };
}

/** Counts handles that are closed from now on. */
function closedHandles(): Disposable & { count: number; reach(count: number): Promise<void> } {
  const { close } = Deno.Kv.prototype;
  let onClose = () => {};
  Deno.Kv.prototype.close = function () {
    close.call(this);
    handles.count++;
    onClose();
  };
  const handles = {
    count: 0,
    reach: (goal: number) =>
      new Promise<void>((resolve) => {
        onClose = () => handles.count >= goal && resolve();
        onClose();
      }),
    [Symbol.dispose]: () => void Object.assign(Deno.Kv.prototype, { close }),
  };
  return handles;
}

/** A server whose KV can be opened, but has no rows. It counts probes and openings. */
class EmptyServer implements AsyncDisposable {
  probes = 0;
  openings = 0;
  /** Called before the response to a probe. */
  onProbe: () => unknown = () => {};
  /** Returns the response to an opening. */
  onOpen: () => Response | Promise<Response> = metadata;
  readonly #server = Deno.serve(AT_ONCE, async ({ method }) => {
    if (method === "POST") return await (this.openings++, this.onOpen());
    await (this.probes++, this.onProbe());
    return new Response("Not a page", { status: 405 });
  });

  constructor() {
    Deno.env.set("DENO_KV_ACCESS_TOKEN", "any token will do");
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}/`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server.shutdown();
  }
}

function metadata(): Response {
  return Response.json({
    version: 3,
    databaseId: crypto.randomUUID(),
    endpoints: [{ url: "http://127.0.0.1:1/", consistency: "strong" }],
    token: "token",
    expiresAt: new Date(Date.now() + 3_600_000),
  });
}

const { signal } = new AbortController();

Deno.test("waitForServer() repeats a probe that gets no response and accepts any response", {
  timeout,
}, async () => {
  await using fake = new EmptyServer();
  const lost = Promise.withResolvers<void>();
  fake.onProbe = () => fake.probes === 1 ? lost.promise : lost.resolve();

  await waitForServer(fake.url, signal);

  assert(fake.probes > 1);
});

Deno.test("reopener() opens all handles or none and retries", { timeout }, async () => {
  await using fake = new EmptyServer();
  fake.onOpen = () => fake.openings === 2 ? new Response("Not yet", { status: 503 }) : metadata();

  const kvs = await reopener(fake.url, 3)(signal);

  assertEquals([kvs.length, fake.openings], [3, 6]);
  for (const kv of kvs) kv.close();
});

Deno.test(
  "reopener() lets at most two openings per handle hang and continues when they end",
  { timeout },
  async () => {
    await using fake = new EmptyServer();
    const end = Promise.withResolvers<void>();
    const twelve = Promise.withResolvers<void>();
    fake.onOpen = async () => {
      if (fake.openings > 8) twelve.resolve();
      await end.promise;
      return metadata();
    };
    fake.onProbe = () => fake.probes > 12 && twelve.resolve();
    using _ = hastened();

    const reopening = reopener(fake.url, 4)(signal);
    await twelve.promise;
    assertEquals(fake.openings, 8);
    end.resolve();

    const kvs = await reopening;
    assertEquals([kvs.length, fake.openings], [4, 12]);
    for (const kv of kvs) kv.close();
  },
);

Deno.test(
  "reopener() starts further openings after half a minute if the first ones hang forever",
  { timeout },
  async () => {
    await using fake = new EmptyServer();
    const bodies: ReadableStreamDefaultController[] = [];
    const stalled = new Promise<void>((resolve) => {
      fake.onOpen = () => {
        if (fake.openings > 2) return metadata();
        if (fake.openings === 2) resolve();
        return new Response(new ReadableStream({ start: (body) => void bodies.push(body) }));
      };
    });
    using _ = hastened();

    const reopening = reopener(fake.url, 1)(signal);
    await stalled;
    const kvs = await reopening;

    assert(fake.openings > 2);
    for (const kv of kvs) kv.close();
    for (const body of bodies) body.close();
  },
);

Deno.test("reopener() rejects when its signal aborts, whether it probes or waits", { timeout }, async () => {
  await using fake = new EmptyServer();
  const opened = Promise.withResolvers<void>();
  fake.onOpen = () => (opened.resolve(), new Response("No", { status: 403 }));
  for (const url of [fake.url, "http://127.0.0.1:1/"]) {
    const stop = new AbortController();
    const reopening = reopener(url, 1)(stop.signal);
    if (url === fake.url) await opened.promise;
    stop.abort(new RangeError("enough"));

    await assertRejects(() => reopening, RangeError, "enough");
  }
});

Deno.test(
  "openStore() explains in one line, without secrets, why a server's KV cannot be used",
  { timeout },
  async () => {
    await using fake = new EmptyServer();
    fake.onOpen = () => new Response("No.\nStack backtrace:\n  0: main", { status: 403 });
    const { host } = new URL(fake.url);
    const patience = { ms: 100, onWait: () => {} };
    for (
      const [url, options, reason] of [
        [fake.url, OPTIONS, "403"],
        [`http://user:password@${host}/`, { ...OPTIONS, patience: { ...patience, ms: 5_000 } }, "403"],
        ["http://user:password@127.0.0.1:1/", OPTIONS, ""],
        ["http://127.0.0.1:1/", { ...OPTIONS, patience }, "it did not respond for 0.1 s"],
      ] as const
    ) {
      const { message } = await assertRejects(() => openStore(url, options), OpenError, reason);

      assertStringIncludes(message, `The KV ${new URL(url).host} cannot be used: `);
      assertEquals(/\n|password|backtrace/.test(message), false, message);
    }
  },
);

Deno.test("openStore() retries each handle that fails to open, up to twice", { timeout }, async () => {
  await using fake = new EmptyServer();
  const ends = [503, 503, 200, 503, 503, 503];
  fake.onOpen = () => ends.shift() === 503 ? new Response("Not yet", { status: 503 }) : metadata();
  using handles = closedHandles();

  // It fails anyway, because this server has no rows to read.
  const { message } = await assertRejects(() => openStore(fake.url, OPTIONS), OpenError);

  assertEquals(/\b503\b/.test(message), false, message);
  await handles.reach(8);
});

Deno.test("openStore() gives up on a server that responds but does not open its KV", {
  timeout,
}, async () => {
  await using fake = new EmptyServer();
  const end = Promise.withResolvers<void>();
  fake.onOpen = async () => (await end.promise, metadata());
  using _ = hastened();
  using handles = closedHandles();

  await assertRejects(() => openStore(fake.url, OPTIONS), OpenError, "No response within");
  end.resolve();

  await handles.reach(8);
});

Deno.test("openStore() opens a path or `:memory:` as a file, and a URL or Deploy's KV as a server", {
  timeout,
}, async () => {
  await using server = await ConnectServer.start();
  const folder = await Deno.makeTempDir();
  Deno.env.set("DENO_KV_DEFAULT_PATH", server.url);

  const found: unknown[] = [];
  for (const path of [`${folder}/things.kv`, ":memory:", server.url, undefined]) {
    using handles = closedHandles();
    const store = await openStore(path, OPTIONS);
    const by = await store.get(["by"]);
    await store.commit((operation) => operation.set(["by"], path));
    await store.close();
    found.push([store.lanes, store.maxChecks, handles.count, by?.value]);
  }

  assertEquals(found, [
    [1, 99, 2, undefined],
    [1, 99, 1, undefined],
    [3, 8, 12, undefined],
    [3, 8, 1, server.url],
  ]);
  Deno.env.delete("DENO_KV_DEFAULT_PATH");
  await Deno.remove(folder, { recursive: true });
});

Deno.test(
  "openStore() opens a server's KV for transactions of eight rows, also after a refusal",
  { timeout },
  async () => {
    await using server = await ConnectServer.start();
    const store = await openStore(server.url, OPTIONS);
    const transactions = new Transactions(store, { clock: Date.now });
    const keys = upTo(8).map((row) => ["row", row]);
    const count = (reads: Transaction<number>["reads"] = keys) =>
      transactions.run({
        reads,
        decide(rows, write) {
          const next = Math.min(...keys.map((key) => numberIn(rows.get(key)))) + 1;
          for (const key of keys) write.set(key, encodeJson(next));
          return next;
        },
      });

    const first = await count();
    const results = [first.result, (await count()).result, (await count(first.rows)).result];

    assertEquals(results, [1, 2, 3]);
    await store.close();
  },
);
