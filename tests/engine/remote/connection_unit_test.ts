import { assertEquals, assertRejects } from "@std/assert";
import { Connection, type ConnectionOptions } from "../../../src/engine/remote/connection.ts";
import { DeadlineExceeded, StoreUnavailable } from "../../../src/engine/deadline.ts";
import { hang } from "../../support/fake_kv.ts";
import { VirtualTime } from "../../support/time.ts";

const KINDS = ["read", "write"] as const;
const DEADLINE = 100;

/** A connection whose handles have names, and a record of what it does with them. */
class Fixture {
  readonly names: Map<Deno.Kv, string> = new Map();
  readonly closed: string[] = [];
  readonly connection: Connection;
  /** The handles that `reopen` returns, and the signals that it received. */
  reopened: PromiseWithResolvers<Deno.Kv[]> = Promise.withResolvers();
  readonly signals: AbortSignal[] = [];

  constructor(names = "ab", reopen: ConnectionOptions["reopen"] = (signal) => this.#reopen(signal)) {
    this.connection = new Connection(this.open(names), { deadline: DEADLINE, reopen });
  }

  #reopen(signal: AbortSignal): Promise<Deno.Kv[]> {
    signal.throwIfAborted();
    this.signals.push(signal);
    this.reopened = Promise.withResolvers();
    signal.addEventListener("abort", () => this.reopened.reject(signal.reason));
    return this.reopened.promise;
  }

  /** Opens a handle for each letter. */
  open(names: string): Deno.Kv[] {
    return [...names].map((name) => {
      const close = () => this.closed.push(name);
      const kv: Deno.Kv = Object.assign(Object.create(Deno.Kv.prototype), { close });
      this.names.set(kv, name);
      return kv;
    });
  }

  /** Starts an operation, which ends on demand. `on` is the name of its handle. */
  start(kind: typeof KINDS[number]): { on: string; end: () => void; ended: Promise<void> } {
    const { promise, resolve } = Promise.withResolvers<void>();
    let on = "";
    const ended = this.connection.run(kind, (kv) => {
      on = this.names.get(kv) ?? "";
      return promise;
    });
    ended.catch(() => {});
    return { on, end: resolve, ended };
  }

  /** The names of the handles of `count` operations, in order. */
  handlesOf(kind: typeof KINDS[number], count: number): string {
    return Array.from({ length: count }, () => this.start(kind).on).join("");
  }
}

Deno.test("Connection uses the least busy handle", async () => {
  using _time = new VirtualTime();
  const fixture = new Fixture("abc");
  assertEquals(fixture.handlesOf("read", 3) + fixture.handlesOf("write", 2), "abcab");
  const last = fixture.start("read");
  assertEquals(last.on, "c");
  last.end();
  await last.ended;
  assertEquals(fixture.handlesOf("write", 1), "c");
});

Deno.test("Connection rejects operations after a missed deadline until it has new handles", async () => {
  using time = new VirtualTime();
  const fixture = new Fixture();
  const { connection } = fixture;
  fixture.start("read");
  fixture.start("write");
  await time.advance(DEADLINE / 2);
  const young = fixture.start("read");
  await time.advance(DEADLINE / 2);

  for (const kind of KINDS) {
    await assertRejects(() => connection.run(kind, hang), StoreUnavailable, "does not respond");
  }
  await time.advance(10 * DEADLINE);
  assertEquals(fixture.handlesOf("read", 2), "");
  assertEquals([fixture.closed, fixture.signals.length], [[], 1]);

  fixture.reopened.resolve(fixture.open("cd"));
  await time.advance(0);
  assertEquals(fixture.handlesOf("read", 2) + fixture.handlesOf("write", 1), "cdc");
  assertEquals(fixture.closed, ["a", "b"]);
  await assertRejects(() => young.ended, DeadlineExceeded);
});

/** Fails at once, as every operation does on a handle that received wrong metadata. */
function failAtOnce(): Promise<never> {
  return Promise.reject(new TypeError("Metadata response body invalid"));
}

Deno.test("Connection avoids a handle for a second after a failure if there are others", async () => {
  using time = new VirtualTime();
  const { connection, names } = new Fixture();
  const attempt = async () => {
    let on = "";
    await connection.run("read", (kv) => {
      on = names.get(kv) ?? "";
      return on === "a" ? failAtOnce() : Promise.resolve();
    }).catch(() => {});
    return on;
  };

  assertEquals([await attempt(), await attempt(), await attempt()], ["a", "b", "b"]);
  await time.advance(999);
  assertEquals(await attempt(), "b");
  await time.advance(1);
  assertEquals([await attempt(), await attempt()], ["a", "b"]);
});

Deno.test("Connection uses a handle again once an operation on it succeeds", async () => {
  using _time = new VirtualTime();
  const fixture = new Fixture();
  const { connection } = fixture;
  for (let handle = 0; handle < 2; handle++) {
    await assertRejects(() => connection.run("read", failAtOnce), StoreUnavailable);
  }

  await connection.run("read", () => Promise.resolve());

  assertEquals(fixture.handlesOf("read", 2), "aa");
});

Deno.test("Connection replaces its handles if one of them does nothing but fail", async () => {
  using time = new VirtualTime();
  for (
    const [kind, between, opened] of [["read", failAtOnce, 1], ["write", () => Promise.resolve(), 0]] as const
  ) {
    const fixture = new Fixture("a");
    const { connection } = fixture;
    await assertRejects(() => connection.run(kind, failAtOnce), StoreUnavailable);
    await time.advance(2 * DEADLINE);
    await connection.run(kind, between).catch(() => {});
    assertEquals(fixture.signals.length, 0);
    await time.advance(1);
    await assertRejects(() => connection.run(kind, failAtOnce), StoreUnavailable);

    assertEquals(fixture.signals.length, opened);
    assertEquals(fixture.handlesOf(kind, 1), "a", "It is used until there are others");
    if (opened === 0) continue;
    fixture.reopened.resolve(fixture.open("b"));
    await time.advance(0);
    assertEquals([fixture.handlesOf(kind, 1), fixture.closed], ["b", ["a"]]);
  }
});

Deno.test("Connection rejects operations if one hangs while new handles are being opened", async () => {
  using time = new VirtualTime();
  const fixture = new Fixture("a");
  const { connection } = fixture;
  for (let failure = 0; failure < 2; failure++) {
    await assertRejects(() => connection.run("read", failAtOnce), StoreUnavailable, "failed");
    await time.advance(2 * DEADLINE + 1);
  }
  await assertRejects(() => connection.run("read", failAtOnce), StoreUnavailable, "failed");
  fixture.start("read");
  await time.advance(DEADLINE);

  await assertRejects(() => connection.run("read", hang), StoreUnavailable, "does not respond");
  assertEquals(fixture.signals.length, 1);
});

/** Replaces the handles `generations` times, each time because of an operation that hangs. Returns these operations. */
async function lose(
  fixture: Fixture,
  time: VirtualTime,
  generations: number,
): Promise<{ end: () => void }[]> {
  const lost: { end: () => void }[] = [];
  for (let count = 0; count < generations; count++) {
    lost.push(fixture.start("read"));
    await time.advance(DEADLINE);
    fixture.reopened.resolve(fixture.open("ab"));
    await time.advance(0);
  }
  return lost;
}

Deno.test("Connection delays new handles for half a minute while eight generations hang", async () => {
  using time = new VirtualTime();
  const fixture = new Fixture();
  const first = fixture.start("read");
  await time.advance(DEADLINE - 1);
  const second = fixture.start("read");
  await time.advance(1);
  first.end();
  await time.advance(0);
  fixture.reopened.resolve(fixture.open("ab"));
  await time.advance(DEADLINE);
  assertEquals(fixture.signals.length, 1, "An operation of old handles does not replace new ones");
  const lost = await lose(fixture, time, 7);
  for (const [opened, { end }] of [[8, second], [9, lost[3] ?? first]] as const) {
    fixture.start("read");
    await time.advance(10_000);
    assertEquals(fixture.signals.length, opened);

    end();
    await time.advance(500);
    assertEquals(fixture.signals.length, opened + 1);
    fixture.reopened.resolve(fixture.open("ab"));
    await time.advance(0);
  }
  fixture.start("read");
  await time.advance(DEADLINE + 29_000);
  assertEquals(fixture.signals.length, 10);
  await time.advance(1_500);
  assertEquals(fixture.signals.length, 11);
});

Deno.test("Connection.close() closes the handles and opens no others", async () => {
  using time = new VirtualTime();
  const idle = new Fixture("ab");
  const waiting = new Fixture();
  waiting.start("read");
  const crowded = new Fixture();
  await lose(crowded, time, 8);
  crowded.start("read");
  await time.advance(DEADLINE);

  for (const fixture of [idle, waiting, crowded]) {
    fixture.closed.length = 0;
    await time.until(fixture.connection.close(), 500);

    assertEquals(fixture.closed, ["a", "b"]);
  }
});

Deno.test("Connection.close() also closes handles that are still being opened", async () => {
  using time = new VirtualTime();
  const reopened = Promise.withResolvers<Deno.Kv[]>();
  const fixture = new Fixture("ab", () => reopened.promise);
  fixture.start("read");
  await time.advance(DEADLINE);

  const closing = fixture.connection.close();
  reopened.resolve(fixture.open("cd"));
  await closing;

  assertEquals(fixture.closed, ["a", "b", "c", "d"]);
});

Deno.test("Connection does not hide why its handles cannot be replaced", async () => {
  using time = new VirtualTime();
  const reason = new TypeError("a bug");
  const fixture = new Fixture("a", () => Promise.reject(reason));
  const unhandled: unknown[] = [];
  const note = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    unhandled.push(event.reason);
  };
  addEventListener("unhandledrejection", note);
  fixture.start("read");
  await time.advance(DEADLINE);
  removeEventListener("unhandledrejection", note);

  assertEquals(unhandled, [reason]);
});
