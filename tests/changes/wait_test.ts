// Requests of the feed that wait for changes.
import { assert, assertEquals, assertLess } from "@std/assert";
import { InFlight } from "../../src/app/in_flight.ts";
import { FeedWatch } from "../../src/changes/feed_watch.ts";
import { encodeJson, type Entry } from "../../src/engine/mod.ts";
import { accountLog, EVERYONES_LOG, OPERATORS_LOG } from "../../src/resource/mod.ts";
import { assertError } from "../support/assertions.ts";
import { type HarnessRequest, upTo } from "../support/client.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { disturbed, fail, FakeKv } from "../support/fake_kv.ts";
import { switchFeed } from "../support/feed.ts";
import type { HarnessOptions } from "../support/harness.ts";
import { OF_ROOMS, Office } from "../support/office.ts";
import { VirtualTime } from "../support/time.ts";

const LIMITS = { minute: 1_000_000, day: 1_000_000 };

/** An office in virtual time, with the feed on. It counts lists and commits. */
class WaitingRoom extends Office {
  readonly time: VirtualTime = new VirtualTime();
  readonly kvUse = { lists: 0, commits: 0 };
  cursor: string = "";
  #began = 0;

  static async start(options: HarnessOptions = {}): Promise<WaitingRoom> {
    const kv = disturbed(new FakeKv().connect(), {
      read: (keys) => void (room.kvUse.lists += keys.length === 0 ? 1 : 0),
      commit: ({ apply }) => (room.kvUse.commits++, apply()),
    });
    const room: WaitingRoom = new WaitingRoom(kv, {
      ...{ catalogue: OF_ROOMS, operatorToken: OPERATOR_TOKEN },
      ...options,
    });
    await room.time.until(room.#furnish(), 1_000);
    room.#began = room.time.now;
    return room;
  }

  async #furnish(): Promise<void> {
    const [ann, ben] = [await this.createAccount(LIMITS), await this.createAccount(LIMITS)];
    Object.assign(this, { ann: ann.apiKey, ben: ben.apiKey });
    await switchFeed(this);
    await this.addRooms(1); // The first commit after the switch takes some time.
    this.cursor = await this.cursorOf(this.ann);
  }

  async cursorOf(key: string): Promise<string> {
    return (await (await this.fetch("GET /v1/changes", { key })).json()).cursor;
  }

  /** Sends a request of Ann's that waits. */
  wait(seconds = 20, request: HarnessRequest = {}): Promise<Response> {
    return this.fetch(`GET /v1/changes?after=${this.cursor}&wait=${seconds}`, { key: this.ann, ...request });
  }

  /** Resolves to a response's status and changes, and when it came, in ms. */
  async outcome(response: Promise<Response>): Promise<unknown[]> {
    const { status } = await response;
    const at = Math.round(this.time.now - this.#began);
    const { changes = [] } = await (await response).json();
    return [
      at,
      status,
      ...changes.map(({ collection, id }: Record<string, unknown>) => `${collection} ${id}`),
    ];
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.time.until(super[Symbol.asyncDispose](), 10_000);
    } finally {
      await this.time[Symbol.asyncDispose]();
    }
  }
}

Deno.test("listChanges() with wait responds a second after it has found a change, with those until then", async () => {
  await using room = await WaitingRoom.start();

  const waiting = [room.wait(), room.wait()].map((response) => room.outcome(response));
  await room.time.advance(3_500);
  await room.addRooms(1);
  await room.time.advance(1_000);
  await room.addRooms(1);
  await room.time.advance(20_000);

  const expected = [5_000, 200, "rooms 2", "rooms 3"];
  assertEquals(await Promise.all(waiting), [expected, expected]);
});

Deno.test("listChanges() with wait responds to changes that only its account sees, and to a gap", async () => {
  await using room = await WaitingRoom.start();
  const ofBen = await room.cursorOf(room.ben);

  const own = room.outcome(room.wait());
  await room.book(room.ann);
  await room.time.advance(3_000);
  const waiting = room.fetch(`GET /v1/changes?after=${ofBen}&wait=20`, { key: room.ben });
  await room.time.advance(3_000);
  for (const days of [0, 7]) await room.time.until(switchFeed(room, days), 1_000);
  await room.time.advance(3_000);

  assertEquals(await own, [2_000, 200, "bookings 1"]);
  const { code } = await (await waiting).json();
  assertEquals([(await waiting).status, code], [410, "changes_gap"]);
});

Deno.test("listChanges() with wait returns changes_off at the end if the feed is switched off meanwhile", async () => {
  await using room = await WaitingRoom.start();

  const waiting = room.wait(5);
  await room.time.advance(2_500);
  await room.time.until(switchFeed(room, 0), 1_000);
  await room.time.advance(5_000);

  await assertError(await waiting, 409, "changes_off");
});

Deno.test("listChanges() with wait responds at once if there are changes, or without a cursor", async () => {
  await using room = await WaitingRoom.start();
  await room.addRooms(1);

  assertEquals(await room.outcome(room.wait()), [0, 200, "rooms 2"]);
  assertEquals(await room.outcome(room.fetch("GET /v1/changes?wait=20", { key: room.ann })), [0, 200]);
});

Deno.test("listChanges() with wait ends after that time, whatever others' items do, and its cursor goes on", async () => {
  await using room = await WaitingRoom.start();
  const json = { label: "one", collections: ["bookings"] };
  const added = await room.fetch("POST /v1/account/keys", { key: room.ann, json });
  const { apiKey: restricted } = await added.json();

  const waiting = [room.wait(7), room.wait(7, { key: restricted })];
  const outcomes = Promise.all(waiting.map((response) => room.outcome(response.then((one) => one.clone()))));
  await room.time.advance(1_500);
  await room.book(room.ben);
  await room.time.advance(1_000);
  const [lists] = [room.kvUse.lists];
  await room.time.advance(3_000);
  const few = room.kvUse.lists - lists;
  await room.time.advance(10_000);

  assertEquals([await outcomes, few], [[[7_000, 200], [7_000, 200]], 3]);
  const [{ cursor }, late] = [await (await waiting[0])?.json(), room.wait(7, { key: restricted })];
  await room.addRooms(1);
  await room.time.advance(7_000);
  assertEquals((await room.outcome(late)).slice(1), [200]);
  const next = await room.fetch(`GET /v1/changes?after=${cursor}`, { key: room.ann });
  assertEquals((await next.json()).changes.length, 1);
});

Deno.test("stop answers requests that wait at once, and asks their clients to connect again", async () => {
  const inFlight = new InFlight();
  await using room = await WaitingRoom.start({ inFlight });
  const waiting = upTo(3).map(() => room.wait());
  await room.time.advance(1_500);
  assertEquals(inFlight.size, 0);

  const stopped = inFlight.stop();
  assertEquals(inFlight.size, 3);
  await room.time.until(stopped, 1);

  const responses = await Promise.all(waiting);
  assertEquals(responses.map(({ status, headers }) => [status, headers.get("connection")]), [
    ...upTo(3).map(() => [200, "close"]),
  ]);
  const late = room.wait();
  assertEquals((await late).status, 503);
});

Deno.test("requests that wait are ten of an account and a thousand in all, give places to accounts with fewer, and are not charged else", async () => {
  await using room = await WaitingRoom.start({
    inFlight: new InFlight({
      ...{ capacity: 1, monitoring: 1, budgetMs: 5_000, stopMs: 3_000, quietMs: 500, maxQuietMs: 2_000 },
    }),
  });
  const keys = [room.ann];
  while (keys.length < 101) keys.push((await room.createAccount(LIMITS)).apiKey);
  const cursors = new Map<string, string>();
  for (const key of keys) cursors.set(key, await room.cursorOf(key));
  const wait = (key: string, request = {}) =>
    room.fetch(`GET /v1/changes?after=${cursors.get(key)}&wait=20`, { key, ...request });
  const waiting: Promise<Response>[] = [];
  const begin = async (key: string, request = {}) => {
    const response = wait(key, request);
    for (let turn = 0; turn < 3; turn++) await room.time.advance(0);
    waiting.push(response);
    return response;
  };
  for (let count = 0; count < 10; count++) begin(room.ann), await room.time.advance(0);

  const before = (await room.fetch("GET /v1/account", { key: room.ann })).headers.get(
    "x-ratelimit-remaining",
  );
  await assertError(await wait(room.ann), 503, "overloaded", /of this account are waiting: 10 can at a time/);
  const read = await room.fetch(`GET /v1/changes?after=${room.cursor}`, { key: room.ann });
  assertEquals([read.status, Number(read.headers.get("x-ratelimit-remaining"))], [200, Number(before) - 1]);

  for (const key of keys.slice(1, 100)) {
    for (let count = 0; count < 10; count++) begin(key), await room.time.advance(0);
  }
  const ended: number[] = [];
  for (const [index, response] of waiting.entries()) response.then(() => ended.push(index));
  const [last = ""] = keys.slice(100);
  for (let count = 0; count < 9; count++) begin(last), await room.time.advance(0);
  // Nine accounts have each given the place of their oldest request to one that had none.
  assertEquals(ended.map((index) => index % 10), Array(9).fill(0));
  const page = await (await waiting[0])?.json();
  assertEquals(page, { changes: [], cursor: cursors.get(room.ann), more: false });
  for (const key of [last, room.ann]) {
    await assertError(await wait(key), 503, "overloaded", /requests are waiting\. Try again/);
  }
  await room.time.advance(20_000);
  assertEquals(new Set((await Promise.all(waiting)).map(({ status }) => status)), new Set([200]));
  assertEquals(waiting.length, 1_009);
});

Deno.test("a closed connection gives up the place of its request that waits", async () => {
  await using room = await WaitingRoom.start();
  const closing = new AbortController();
  const waiting = upTo(10).map((number) => room.wait(20, number === 0 ? { signal: closing.signal } : {}));
  await room.time.advance(1_500);
  const refused = await room.wait();

  closing.abort();
  await room.time.advance(0);
  const next = room.wait();
  await room.time.advance(20_000);

  assertEquals([refused.status, (await next).status], [503, 200]);
  await Promise.all(waiting);
});

Deno.test.each<[string, string, unknown, number, string]>([
  ["replaced", "POST /operator/v1/accounts/ID/rotate", { graceSeconds: 0 }, 401, "invalid_api_key"],
  ["its account suspended", "PATCH /operator/v1/accounts/ID", { suspended: true }, 403, "account_suspended"],
])(
  "listChanges() with wait refuses a key at the end if it is %s meanwhile",
  async (_, target, json, status, code) => {
    await using room = await WaitingRoom.start();
    const id = await room.idOf(room.ann);
    const waiting = room.wait(5);
    await room.time.advance(2_500);
    const changed = await room.operate(target.replace("ID", id), { json });
    assert(changed.ok);
    await room.time.advance(5_000);

    await assertError(await waiting, status, code);
  },
);

Deno.test("requests that wait share one list a second and make no commit, and their durations leave the wait out", async () => {
  await using room = await WaitingRoom.start();
  await room.time.advance(5_000);
  const accounts = upTo(30).map(() => room.createAccount(LIMITS));
  const keys = (await Promise.all(accounts)).map(({ apiKey }) => apiKey);
  const cursors = await Promise.all(keys.map((key) => room.cursorOf(key)));
  await room.time.advance(5_000);
  const waiting = keys.map((key, index) =>
    room.fetch(`GET /v1/changes?after=${cursors[index]}&wait=20`, { key })
  );
  await room.time.advance(1_500);
  Object.assign(room.kvUse, { lists: 0, commits: 0 });

  await room.time.advance(15_000);
  assertEquals(room.kvUse, { lists: 15, commits: 0 });
  await room.time.advance(10_000);
  await Promise.all(waiting);
  Object.assign(room.kvUse, { lists: 0 });
  await room.time.advance(10_000);
  assertEquals(room.kvUse.lists, 0);

  const [, sum] =
    /duration_seconds_sum\{route="\/v1\/changes"\} (\S+)/.exec(room.metrics.registry.text("")) ?? [];
  assertLess(Number(sum), 1);
  const waits = room.accesses.filter(({ route }) => route === "/v1/changes");
  assertEquals(new Set(waits.map(({ ms }) => ms)), new Set([0]));
});

/** A store whose lists have rows with these stamps, each of an account of that name. */
class FakeStore {
  dataVersion: number | undefined;
  /** The stamps after which lists began. */
  readonly starts: string[] = [];
  rows: readonly string[] = [];
  /** Called before a list is read. */
  read: () => unknown = () => {};

  async list(selector: Deno.KvListSelector, limit: number): Promise<Entry[]> {
    assert("start" in selector);
    const after = String(selector.start.at(-2));
    this.starts.push(after);
    await this.read();
    const found = this.rows.filter((stamp) => stamp > after).slice(0, limit);
    return found.map((stamp) => ({
      key: [...OPERATORS_LOG, stamp],
      value: encodeJson([{ collection: "bookings", readableBy: "owner", accountId: stamp }]),
      versionstamp: stamp,
    }));
  }
}

const FOREVER = { ms: 100_000, signal: new AbortController().signal };

Deno.test("FeedWatch lists the rows of a file only if there was a commit, and again if somebody joins who has read less", async () => {
  await using time = new VirtualTime();
  const store = new FakeStore();
  store.dataVersion = 1;
  const watch = new FeedWatch(store);
  const stop = new AbortController();
  const { signal } = stop;

  const waiting = [watch.hasAppended([accountLog("7")], "5", { ms: 100_000, signal })];
  await time.advance(4_000);
  assertEquals(store.starts, ["5"]);
  [store.dataVersion, store.rows] = [2, ["7"]];
  waiting.push(watch.hasAppended([EVERYONES_LOG], "6", { ms: 100_000, signal }));
  await time.advance(4_000);
  assertEquals(store.starts, ["5", "5"]);
  waiting.push(watch.hasAppended([accountLog("7")], "6", FOREVER));
  await time.advance(2_000);
  assertEquals(store.starts, ["5", "5", "6"]);
  stop.abort();

  assertEquals(await Promise.all(waiting), [true, false, true]);
});

Deno.test("FeedWatch misses no row that is appended while a list is read, nor one before that of somebody who joins", async () => {
  await using time = new VirtualTime();
  const store = new FakeStore();
  const watch = new FeedWatch(store);
  const joined: Promise<boolean>[] = [];
  store.rows = ["3", "7", "9"];
  store.read = async () => {
    store.read = () => {};
    await Promise.resolve();
    joined.push(
      watch.hasAppended([accountLog("7")], "3", FOREVER),
      watch.hasAppended([accountLog("9")], "9", { ...FOREVER, ms: 4_000 }),
    );
  };

  const first = watch.hasAppended([EVERYONES_LOG, accountLog("a")], "8", FOREVER);
  await time.advance(3_000);
  store.rows = ["a"];
  await time.advance(2_000);

  assertEquals(await Promise.all(joined), [true, false]);
  assertEquals([await first, store.starts.slice(0, 3)], [true, ["8", "3", "9"]]);
});

Deno.test("FeedWatch goes on after a list has failed, and reads on while lists are full", async () => {
  await using time = new VirtualTime();
  const store = new FakeStore();
  store.dataVersion = 1;
  const watch = new FeedWatch(store);
  store.read = () => fail();
  const waiting = watch.hasAppended([accountLog("1199")], "0999", FOREVER);
  await time.advance(2_000);
  store.read = () => {};
  store.rows = upTo(1_200).map((stamp) => `${stamp}`.padStart(4, "0"));
  await time.advance(1_000);
  assertEquals(store.starts, ["0999", "0999", "0999"]);
  store.starts.length = 0;
  const late = watch.hasAppended([accountLog("1199")], "0100", FOREVER);
  await time.advance(2_000);

  assertEquals([await waiting, await late], [true, true]);
  assertEquals(store.starts, ["0100", "0600", "1100"]);
});

Deno.test("FeedWatch gathers changes until the end of the wait at most, and waits for nothing once its signal has aborted", async () => {
  await using time = new VirtualTime();
  const store = new FakeStore();
  store.rows = ["7"];
  const watch = new FeedWatch(store);
  const start = time.now;
  const ends: [boolean, number][] = [];
  const wait = async (ms: number, signal: AbortSignal) => {
    ends.push([await watch.hasAppended([accountLog("7")], "5", { ms, signal }), time.now - start]);
  };

  wait(1_400, FOREVER.signal);
  wait(10_000, AbortSignal.abort());
  wait(-1, FOREVER.signal);
  await time.advance(3_000);

  assertEquals(ends, [[false, 0], [false, 0], [true, 1_400]]);
});
