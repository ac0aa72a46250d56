import { assert, assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { type Build, CommitInDoubt } from "../../src/engine/backend.ts";
import {
  AGAIN,
  DeadlineExceeded,
  retried,
  StoreUnavailable,
  withDeadline,
} from "../../src/engine/deadline.ts";
import { CorruptRow, decodeJson, decodeText, encodeJson, encodeText } from "../../src/engine/row.ts";
import { requireSchema, SCHEMA, SchemaVersion, Superseded } from "../../src/engine/schema_version.ts";
import { RoundTrip, Store } from "../../src/engine/store.ts";
import { carryOut, type Disturbance, disturbed, FakeKv, hang, locked, onFile } from "../support/fake_kv.ts";
import { VirtualTime } from "../support/time.ts";

const ROW = ["row"];
const setRow: Build = (operation) => operation.set(ROW, 1);

/** A store on a KV that tests can disturb. Its release knows the schema versions 1 and 2. */
class Fixture implements AsyncDisposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly kv: FakeKv = new FakeKv();
  disturbance: Disturbance = {};
  readonly store: Store;

  constructor() {
    const kv = disturbed(this.kv.connect(), {
      read: (keys) => this.disturbance.read?.(keys),
      commit: (commit) => (this.disturbance.commit ?? carryOut)(commit),
    });
    const schema = new SchemaVersion({ oldest: 1, newest: 2 });
    this.store = new Store(onFile(kv, { clock: () => 0, deadline: 250 }), { schema });
  }

  /** Sets a row as another process. */
  async set(key: Deno.KvKey, value: unknown): Promise<void> {
    await this.kv.connect().atomic().set(key, value).commit();
  }

  setSchema(version: number, revision?: number): Promise<void> {
    return this.set(SCHEMA, encodeJson({ version, revision }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.time[Symbol.asyncDispose]();
  }
}

Deno.test("Store reads one row, several in the order of the given keys, and a range up to a limit", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new Store(onFile(kv, { clock: () => 0 }));
  const result = await store.commit((operation) => {
    for (let row = 0; row < 600; row++) operation.set(["row", row], row);
  });
  const versionstamp = result.ok ? result.versionstamp : "";
  const entry = (row: number) => ({ key: ["row", row], value: row, versionstamp });

  assertEquals(await store.get(["row", 7]), entry(7));
  assertEquals(await store.get(["row", -1]), null);
  assertEquals(await store.getMany([["row", 2], ["none"], ["row", 1]]), [entry(2), null, entry(1)]);
  assertEquals(await store.getMany([]), []);
  const rows = await store.list({ prefix: ["row"] }, 550);
  assertEquals(rows, Array.from({ length: 550 }, (_, row) => entry(row)));
  assertEquals(await store.list({ prefix: ["row"] }, 2, { reverse: true }), [entry(599), entry(598)]);
});

Deno.test("Store.removeAll() removes up to 200 rows, and says if there may be more", async () => {
  using kv = await Deno.openKv(":memory:");
  const store = new Store(onFile(kv, { clock: () => 0 }));
  const set = async (rows: number) => {
    await store.commit((operation) => {
      for (let row = 0; row < rows; row++) operation.set(["row", row], row);
    });
  };
  const remove = async () => {
    const mayBeMore = await store.removeAll({ prefix: ["row"] });
    return [mayBeMore, (await store.list({ prefix: ["row"] }, 9)).map(({ value }) => value)];
  };

  await set(201);
  assertEquals([await remove(), await remove()], [[true, [200]], [false, []]]);
  await set(199);
  assertEquals([await remove(), await remove()], [[false, []], [false, []]]);
});

Deno.test("Store.commit() works under each known schema version, and adopts the row when only that has changed", async () => {
  await using fixture = new Fixture();
  const { kv, store } = fixture;
  for (const version of [1, 1, 2, 1]) {
    let builds = 0;
    const { versionstamp = null } = kv.rows.get(JSON.stringify(ROW)) ?? {};
    await fixture.setSchema(version);

    const build: Build = (...to) => (builds++, setRow(...to));
    const result = await fixture.time.until(store.commit(build, [{ key: ROW, versionstamp }]), 10);

    assertEquals([result.ok, builds, store.schema.version], [true, 2, version]);
  }
});

Deno.test("Store.commit() returns the checked rows, if one of them has changed together with the schema's", async () => {
  await using fixture = new Fixture();
  await fixture.setSchema(1);
  await fixture.set(ROW, 7);

  const checks = [["none"], ROW].map((key) => ({ key, versionstamp: null }));
  const result = await fixture.store.commit(setRow, checks);

  assert(!result.ok);
  assertEquals(result.rows.map((row) => row?.value), [undefined, 7]);
  assertEquals((await fixture.store.commit(() => {})).ok, true);
});

Deno.test.each<[string, string, (fixture: Fixture) => Promise<unknown>]>([
  ["version 3", "have version 3, ", (fixture) => fixture.setSchema(3)],
  ["version 0", "have version 0, ", (fixture) => fixture.setSchema(0)],
  ["a revision", "have been rewritten since this process started", (fixture) => fixture.setSchema(2, 1)],
  [
    "no row any more",
    "it contains rows from another program",
    ({ kv }) => kv.connect().atomic().delete(SCHEMA).commit(),
  ],
])("Store.commit() sends nothing once the schema has %s, and reports that", async (_, reason, change) => {
  await using fixture = new Fixture();
  const { kv, store } = fixture;
  await fixture.setSchema(1);
  await fixture.time.until(store.commit(() => {}), 10);
  await change(fixture);
  let sent = 0;
  fixture.disturbance = { commit: ({ apply }) => (sent++, apply()) };

  for (let count = 0; count < 3; count++) await assertRejects(() => store.commit(setRow), Superseded);

  const { message } = await store.schema.superseded;
  assert(message.includes(reason), message);
  assertEquals([sent, kv.value(...ROW)], [1, undefined]);
});

Deno.test("SchemaVersion.switch() sets the oldest version that has the features and the revision", async () => {
  const kv = new FakeKv();
  const schema = new SchemaVersion();
  const store = new Store(onFile(kv.connect(), { clock: () => 0 }), { schema });
  const row = async (change: (write: Deno.AtomicOperation) => void) => {
    await store.commit(change);
    return [kv.value(...SCHEMA), await store.features()].map((value) =>
      value instanceof Uint8Array ? JSON.parse(new TextDecoder().decode(value)) : value
    );
  };
  await kv.connect().atomic().set(SCHEMA, encodeJson({ version: 1 })).commit();
  await store.features();

  assertEquals(await row((write) => schema.switch("feed", 7, write)), [
    { version: 3, features: { feed: 7 } },
    { feed: 7 },
  ]);
  assertEquals(await row((write) => schema.switch("news", 1, write)), [
    { version: 3, features: { feed: 7, news: 1 } },
    { feed: 7, news: 1 },
  ]);
  assertEquals(await row((write) => schema.switch("feed", 0, write)), [
    { version: 3, features: { news: 1 } },
    { news: 1 },
  ]);
  assertEquals(await row((write) => schema.switch("news", 0, write)), [{ version: 1 }, {}]);
  await store.commit((write) => schema.switch("feed", 7, write));
  await store.features();
  await store.commit((write) => schema.revise(write));
  assertEquals(kv.value(...SCHEMA), encodeJson({ version: 3, revision: 1, features: { feed: 7 } }));
  await assertRejects(() => store.features(), Superseded);

  const revised = new SchemaVersion();
  const next = new Store(onFile(kv.connect(), { clock: () => 0 }), { schema: revised });
  assertEquals(await next.features(), { feed: 7 });
  await next.commit((write) => revised.switch("feed", 0, write));
  assertEquals(kv.value(...SCHEMA), encodeJson({ version: 2, revision: 1 }));
});

Deno.test("SchemaVersion.features is another object only if the row has other features", async () => {
  await using fixture = new Fixture();
  const store = new Store(onFile(fixture.kv.connect(), { clock: () => 0 }));
  const set = (features: object) => fixture.set(SCHEMA, encodeJson({ version: 3, features }));
  await set({ feed: 7, news: 1 });
  const features = await store.features();
  await set({ news: 1, feed: 7 });

  assert(await store.features() === features);
  for (const other of [{ feed: 7 }, { feed: 7, news: 2 }, { feed: 7, letters: 1 }, {}]) {
    await set(other);
    assertEquals(await store.features(), other);
  }
});

Deno.test("RoundTrip.isFar is true for a slow KV with several lanes, so never for a file", async () => {
  await using time = new VirtualTime();
  for (const [lanes, ms, isFar] of [[3, 150, true], [3, 1, false], [1, 150, false]] as const) {
    const trip = new RoundTrip({ lanes });

    for (let count = 0; count < 16; count++) await time.until(trip.measured(pause(ms)), 1_000);

    assertEquals([trip.isFar, Math.abs(trip.ms - ms) < ms / 5], [isFar, true]);
  }
});

/** Requires the schema version of a KV. */
async function requireOn(kv: Deno.Kv, create = true): Promise<void> {
  await requireSchema(onFile(kv, { clock: () => 0 }), create);
}

/** The rows of a KV, except those of the backend. */
async function rowsOf(kv: Deno.Kv): Promise<unknown[]> {
  const rows = await Array.fromAsync(kv.list({ prefix: [] }));
  return rows.filter(({ key }) => key[0] !== "commits").map(({ key, value }) => [key, value]);
}

const VERSION_1 = [[SCHEMA, encodeJson({ version: 1 })]];

Deno.test("requireSchema() sets version 1 in a KV with only markers, even if the file is locked, and accepts it", async () => {
  using kv = await Deno.openKv(":memory:");
  for (const key of [["commits", "probe"], ["commits", "process", 1]]) await kv.set(key, encodeJson({}));
  let tries = 0;
  const rough = disturbed(kv, { commit: ({ apply }) => ++tries < 3 ? locked() : apply() });

  for (const create of [true, true, false]) await requireOn(rough, create);

  assertEquals([await rowsOf(kv), tries], [VERSION_1, 3]);
});

Deno.test.each<[string, [Deno.KvKey, unknown] | undefined, string, boolean?]>([
  ["no rows when create is false", undefined, "it is empty, and only the service creates", false],
  ["foreign rows", [["foreign"], 7], "it contains rows from another program"],
  ["version 4", [SCHEMA, encodeJson({ version: 4 })], "have version 4, but this service expects version 3"],
  ["no version", [SCHEMA, encodeJson({})], "its rows have version undefined"],
  ["a version that is not JSON", [SCHEMA, encodeText("1.")], "it contains rows from another program"],
])("requireSchema() rejects a KV with %s, and leaves it unchanged", async (_, row, message, create) => {
  using kv = await Deno.openKv(":memory:");
  if (row) await kv.set(...row);

  await assertRejects(() => requireOn(kv, create !== false), Error, message);

  assertEquals(await rowsOf(kv), row ? [row] : []);
});

Deno.test("requireSchema() accepts a KV that another process sets up just before any access", async () => {
  for (const turn of [1, 2, 3]) {
    using kv = await Deno.openKv(":memory:");
    let accesses = 0;
    const read = async () => {
      if (++accesses === turn) await requireOn(kv);
    };
    await requireOn(disturbed(kv, { read, commit: async ({ apply }) => (await read(), await apply()) }));

    assertEquals([await rowsOf(kv), accesses >= turn], [VERSION_1, true]);
  }
});

Deno.test("withDeadline() resolves to the value, or rejects once the deadline has passed", async () => {
  assertEquals(await withDeadline(Promise.resolve(7), 60_000), 7);
  await using time = new VirtualTime();
  const late = withDeadline(hang(), 250);

  await assertRejects(() => time.until(late, 249), Error, "within 249 ms");
  await assertRejects(() => time.until(late, 250), DeadlineExceeded, "No response within 250 ms");
});

Deno.test("withDeadline() rejects with StoreUnavailable and makes any other error its cause", async () => {
  const cause = new TypeError("disk I/O error");
  const unavailable = new StoreUnavailable("inner");
  const failing = (error: Error) =>
    assertRejects(() => withDeadline(Promise.reject(error), 60_000), StoreUnavailable);

  assertStrictEquals((await failing(cause)).cause, cause);
  assertStrictEquals(await failing(unavailable), unavailable);
});

function failed(cause: unknown): StoreUnavailable {
  return new StoreUnavailable("The operation failed", { cause });
}

const URLS = "POST (https://a:b@kv.example:4512/v2/write?token=c#d): https:// and HTTP://[::1]/e.";

Deno.test.each<[string, StoreUnavailable, string]>([
  ["its own message", new DeadlineExceeded("No response within 250 ms"), "No response within 250 ms"],
  ["the message of its cause", failed(new TypeError("database or disk is full")), "database or disk is full"],
  [
    "the first line only",
    failed(new TypeError("disk I/O error\nat fn (/srv/src/kv.rs:1)")),
    "disk I/O error",
  ],
  [
    "the message of its cause's cause",
    new CommitInDoubt(() => Promise.reject(), failed(new TypeError("disk I/O error"))),
    "disk I/O error",
  ],
  ["its own message if the cause is not an error", failed("text"), "The operation failed"],
  [
    "a message in which only the host of a URL is shown",
    failed(new TypeError(URLS)),
    "POST (kv.example:4512): [URL] and [::1]",
  ],
])("StoreUnavailable.logReason is %s", (_, error, reason) => {
  assertEquals(error.logReason, reason);
});

Deno.test("retried() repeats an attempt until it returns anything but AGAIN, or throws", async () => {
  let attempts = 0;
  const fourth = (result: () => unknown) => () => Promise.resolve(++attempts % 4 === 0 ? result() : AGAIN);

  for (const result of ["done", null, false, undefined]) {
    assertEquals(await retried(fourth(() => result)), result);
  }
  const failing = fourth(() => Promise.reject(new RangeError("no use")));
  await assertRejects(() => retried(failing), RangeError, "no use");

  assertEquals(attempts, 5 * 4);
});

Deno.test("retried() pauses longer after each attempt, up to 20 ms, and gives up after the deadline", async () => {
  await using time = new VirtualTime();
  const { random } = Math;
  using _longest = { [Symbol.dispose]: () => Math.random = random };
  Math.random = () => 1;
  const starts: number[] = [];
  const attempt = async () => {
    starts.push(time.now);
    if (starts.length > 24) await pause(2_000);
    return AGAIN;
  };

  await assertRejects(() => time.until(retried(attempt), 60_000), StoreUnavailable, "conflicting");

  const pauses = starts.slice(1).map((start, index) => start - (starts[index] ?? 0));
  assertEquals(pauses, [...Array.from({ length: 24 }, (_, at) => Math.min(at + 1, 20)), 2_020, 2_020]);
});

Deno.test("decodeText() reverses encodeText(), and decodeJson() names the table of a row that is not JSON", () => {
  const row = (value: unknown) => ({ key: ["numbers", 1], value, versionstamp: "1" });

  assertEquals(decodeText(row(encodeText("é\n{"))), "é\n{");
  for (
    const [value, kind] of [
      [{ a: 1 }, "text"],
      [new Uint8Array([0x22, 0xff, 0x22]), "text"],
      [encodeText("{"), "JSON"],
    ] as const
  ) {
    assertThrows(() => decodeJson(row(value)), CorruptRow, `A row of numbers is not ${kind}`);
  }
});
