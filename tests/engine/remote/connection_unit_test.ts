import { assertEquals, assertRejects } from "@std/assert";
import { Connection } from "../../../src/engine/remote/connection.ts";
import { DeadlineExceeded, StoreUnavailable } from "../../../src/engine/deadline.ts";
import { fail, hang } from "../../support/fake_kv.ts";
import { VirtualTime } from "../../support/time.ts";

const KINDS = ["read", "write"] as const;
const DEADLINE = 100;

/** A connection whose handles have names, in virtual time, and a record of what it does with them. */
class Fixture implements Disposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly connection: Connection;
  readonly closed: string[] = [];
  /** The handles that `reopen` returns, and the number of its calls. */
  reopened: PromiseWithResolvers<Deno.Kv[]> = Promise.withResolvers();
  reopenings = 0;
  readonly #names: Map<Deno.Kv, string> = new Map();

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

  /** Starts an operation, which ends on demand. `on` is the name of its handle. */
  start(kind: typeof KINDS[number] = "read"): { on: string; end: () => void; ended: Promise<void> } {
    const { promise, resolve } = Promise.withResolvers<void>();
    let on = "";
    const ended = this.connection.run(kind, (kv) => {
      on = this.#names.get(kv) ?? "";
      return promise;
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

  [Symbol.dispose](): void {
    this.time[Symbol.dispose]();
  }
}

Deno.test("Connection uses the least busy handle", async () => {
  using fixture = new Fixture("abc");
  assertEquals(fixture.handlesOf("read", 3) + fixture.handlesOf("write", 2), "abcab");
  const last = fixture.start();
  assertEquals(last.on, "c");
  last.end();
  await last.ended;
  assertEquals(fixture.handlesOf("write", 1), "c");
});

Deno.test("Connection rejects operations after a missed deadline until it has new handles", async () => {
  using fixture = new Fixture();
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
  using fixture = new Fixture();
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
    using fixture = new Fixture("a");
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
  using fixture = new Fixture();
  fixture.start();
  await fixture.time.advance(DEADLINE - 1);
  fixture.start();
  await fixture.time.advance(1);
  await fixture.replace();

  await fixture.time.advance(DEADLINE);

  assertEquals(fixture.reopenings, 1);
});

Deno.test("Connection delays new handles for half a minute while eight generations hang", async () => {
  using fixture = new Fixture();
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

Deno.test.each([
  ["", 0, 0],
  [", and opens no others, if it needs new ones", 0, 1],
  [", and does not wait for others that hang", 8, 1],
])("Connection.close() closes the handles%s", async (_, lost, hanging) => {
  using fixture = new Fixture();
  await fixture.lose(lost);
  fixture.handlesOf("read", hanging);
  await fixture.time.advance(DEADLINE);
  fixture.closed.length = 0;

  await fixture.time.until(fixture.connection.close(), 500);

  assertEquals(fixture.closed, ["a", "b"]);
});

Deno.test("Connection.close() also closes handles that are still being opened", async () => {
  using fixture = new Fixture("ab", { ignoresSignal: true });
  fixture.start();
  await fixture.time.advance(DEADLINE);

  const closing = fixture.connection.close();
  await fixture.replace("cd");
  await closing;

  assertEquals(fixture.closed, ["a", "b", "c", "d"]);
});
