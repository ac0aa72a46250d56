import { assert, assertEquals, assertGreater, assertLessOrEqual } from "@std/assert";
import { setImmediate } from "node:timers/promises";
import { type Change, NO_CHANGE, type Row } from "../../src/batching/change.ts";
import { GroupCommit } from "../../src/batching/group_commit.ts";
import { Outdated, VersionCheck, type VersionRow } from "../../src/store/versions.ts";
import { certain } from "../../src/kv/commit.ts";
import { carryOut, type Commit, hang } from "../kv/disturbed_kv.ts";
import { RoughStore } from "../kv/rough_store.ts";

const WATCHED: Deno.KvKey = ["watched"];

/** A group commit on a KV in memory that takes ten checks at a time. */
class Fixture extends RoughStore {
  readonly watched: VersionRow = { key: WATCHED, version: "" };
  readonly group: GroupCommit = new GroupCommit(this.store, this.watched);

  static override async open(deadline?: number): Promise<Fixture> {
    return new Fixture(await Deno.openKv(":memory:"), deadline);
  }

  /** How many of the changes, made at once, went into each commit. */
  async sizes(changes: readonly Change[]): Promise<number[]> {
    const results = await Promise.all(changes.map((change) => this.group.commit(change)));
    const stamps = results.map((result) => result.ok ? result.versionstamp : "");
    return [...new Set(stamps)].map((stamp) => stamps.filter((other) => other === stamp).length);
  }

  async has(key: Deno.KvKey): Promise<boolean> {
    return (await this.kv.get(key)).versionstamp !== null;
  }
}

/** A change that sets so many rows of its own, each of so many bytes. */
function change(name: number, { rows = 1, bytes = 1 } = {}): Change {
  const sets = upTo(rows).map((row): Row => [["rows", name, row], new Uint8Array(bytes)]);
  return { checks: [], sets };
}

function upTo(end: number): number[] {
  return Array.from({ length: end }, (_, number) => number);
}

const check = (...key: Deno.KvKey) => ({ key, versionstamp: null });

const SHARED = check("shared");
const LONG = "k".repeat(1_000);
const LOOK_ALIKE: readonly Deno.KvKey[] = [
  ["a", "x"],
  ["b", "x"],
  ["x"],
  ["x", "y", "x"],
  ["1", "x"],
  [1, "x"],
  ["x", "1"],
  ["x", 1],
];

Deno.test.each([
  ["few small ones", upTo(30).map((name) => change(name)), 1],
  ["many bytes", upTo(15).map((name) => change(name, { bytes: 59_900 })), 2],
  ["many rows set", upTo(10).map((name) => change(name, { rows: 250 })), 4],
  [
    "many rows deleted",
    upTo(4).map((name) => ({ ...change(name), deletes: upTo(449).map((row) => ["other", name, row]) })),
    2,
  ],
  [
    "many checks",
    upTo(5).map((name) => ({ checks: upTo(4).map((row) => check(name, row)), sets: [] })),
    3,
  ],
  ["the very same check", upTo(30).map((name) => ({ ...change(name), checks: [SHARED] })), 1],
  [
    "the very same check beside another",
    upTo(8).map((name) => ({ ...change(name), checks: [SHARED, check(name)] })),
    1,
  ],
  [
    "checks of rows whose keys look alike",
    LOOK_ALIKE.map((key) => ({ checks: [check(...key)], sets: [] })),
    1,
  ],
  ["a row set twice", [0, 1, 0].map((name) => change(name)), 1],
  ["a row set and deleted", [change(0), { ...NO_CHANGE, deletes: [["rows", 0, 0]] }, change(1)], 1],
  [
    "a row checked by all who count in it",
    upTo(3).map(() => ({
      checks: [SHARED],
      sets: [],
      increments: [SHARED.key],
    })),
    1,
  ],
  [
    "many long keys set",
    upTo(9).map((name) => ({
      checks: [],
      sets: upTo(10).map((row): Row => [[LONG, name, row], new Uint8Array()]),
    })),
    2,
  ],
  [
    "many long keys deleted",
    upTo(9).map((name) => ({
      ...NO_CHANGE,
      deletes: upTo(10).map((row) => [LONG, name, row]),
    })),
    2,
  ],
  ["one that is too much for others", [change(0, { rows: 950 }), change(1)], 2],
])(
  "GroupCommit.commit() joins what comes at once as far as a commit takes it: %s",
  async (_, changes, most) => {
    using fixture = await Fixture.open();
    const commits: Commit[] = [];
    fixture.disturbance = { commit: (commit) => (commits.push(commit), carryOut(commit)) };

    const results = await Promise.all(changes.map((change) => fixture.group.commit(change)));

    assert(results.every(({ ok }) => ok));
    // One opens a slot for the marks of commits.
    assertLessOrEqual(commits.filter(({ keys }) => keys.length > 1).length, most);
    for (const { checks } of commits) assertLessOrEqual(checks, fixture.store.maxChecks + 1);
  },
);

Deno.test("GroupCommit.commit() has three commits on their way at a time", async () => {
  using fixture = new Fixture(await Deno.openKv(":memory:"), 5_000);
  await Promise.all(upTo(3).map(() => fixture.store.commit(() => {})));
  let started = 0;
  const threeAreOnTheirWay = Promise.withResolvers<void>();
  const commit: typeof carryOut = async (commit) => {
    if (++started === 3) threeAreOnTheirWay.resolve();
    await threeAreOnTheirWay.promise;
    return await carryOut(commit);
  };
  fixture.disturbance = { commit };

  const changes = [];
  for (const name of upTo(3)) {
    changes.push(fixture.group.commit(change(name)));
    for (let turn = 0; started <= name && turn < 1_000; turn++) await setImmediate();
    assertGreater(started, name);
  }
  const last = fixture.group.commit(change(3));

  assertEquals((await Promise.all([...changes, last])).map(({ ok }) => ok), [true, true, true, true]);
});

Deno.test("GroupCommit.commit() sets and deletes, and sets the watched row, whose version it then knows", async () => {
  using fixture = await Fixture.open();
  await fixture.sizes([change(0)]);

  const result = await fixture.group.commit({ ...change(1), deletes: [["rows", 0, 0]] });

  const rows = await Array.fromAsync(fixture.kv.list({ prefix: [] }));
  const kept = rows.filter(({ key: [table] }) => table !== "commits");
  const versionstamp = result.ok ? result.versionstamp : "";
  assertEquals(kept.map(({ key }) => key), [["rows", 1, 0], WATCHED]);
  assertEquals(fixture.watched.version, kept[1]?.versionstamp);
  assertEquals(kept.map((row) => row.versionstamp), [versionstamp, versionstamp]);
});

Deno.test("GroupCommit.commit() changes a row in the order in which that was asked for", async () => {
  using fixture = await Fixture.open();
  const gone: Change = { ...NO_CHANGE, deletes: [["rows", 0, 0], ["rows", 1, 0]] };
  const twice: Change = { ...NO_CHANGE, sets: [[["rows", 2, 0], new Uint8Array([2])]] };

  assertEquals(await fixture.sizes([change(0), gone, change(1), change(2), twice]), [5]);

  assertEquals(await Promise.all([0, 1].map((name) => fixture.has(["rows", name, 0]))), [false, true]);
  assertEquals((await fixture.kv.get(["rows", 2, 0])).value, new Uint8Array([2]));
});

Deno.test("GroupCommit.commit() refuses only the changes whose checks fail", async () => {
  using fixture = await Fixture.open();
  await fixture.sizes([change(3)]);
  const changes = upTo(8).map((name) => ({ ...change(name), checks: [check("rows", name, 0)] }));

  const results = await Promise.all(changes.map((change) => fixture.group.commit(change)));

  assertEquals(results.map(({ ok }) => ok), upTo(8).map((name) => name !== 3));
});

Deno.test.each<[string, { ok: boolean[]; commits: number }]>([
  ["each by itself", { ok: [true, false, false], commits: 1 }],
  ["by the very same check", { ok: [true, true, true], commits: 1 }],
])(
  "GroupCommit.commit() answers, in one commit, changes that check one row %s",
  async (how, expected) => {
    using fixture = await Fixture.open();
    const changes = upTo(3).map((name) => ({
      ...change(name),
      checks: [how === "by the very same check" ? SHARED : check("shared")],
    }));
    await fixture.sizes([change(9)]);
    let commits = 0;
    fixture.disturbance = { commit: (commit) => (commits++, carryOut(commit)) };

    const results = await Promise.all(changes.map((change) => fixture.group.commit(change)));

    assertEquals({ ok: results.map(({ ok }) => ok), commits }, expected);
    assertEquals(await Promise.all(upTo(3).map((name) => fixture.has(["rows", name, 0]))), expected.ok);
  },
);

Deno.test("GroupCommit.commit() rejects only changes whose VersionCheck does not hold, and tells it", async () => {
  using fixture = await Fixture.open();
  const row: VersionRow = { key: ["row"], version: "" };
  const condition = new VersionCheck(row);
  const withCondition = (name: number) => ({ ...change(name), checks: [condition] });
  const before = performance.now();
  assertEquals(await fixture.sizes([withCondition(0), withCondition(1)]), [2]);
  assertEquals([condition.heldSince(before), condition.holds], [true, true]);
  const { versionstamp } = await fixture.kv.set(row.key, 1);
  const after = performance.now();

  const [refused, made] = await Promise.allSettled(
    [withCondition(2), change(3)].map((change) => fixture.group.commit(change)),
  );

  assert(refused?.status === "rejected" && refused.reason instanceof Outdated);
  assertEquals(made?.status === "fulfilled" && made.value.ok, true);
  assertEquals([condition.heldSince(after), condition.holds], [false, false]);
  assertEquals(row.version, versionstamp);
  assertEquals(await Promise.all([2, 3].map((name) => fixture.has(["rows", name, 0]))), [false, true]);
});

const unanswered: typeof carryOut = async ({ apply }) => (await apply(), await hang());
const conflict = { ...change(0), checks: [check("rows", 9, 0)] };

Deno.test.each([
  ["the commit before it", [change(0), { ...change(1), checks: [check("rows", 0, 0)] }], [unanswered]],
  ["another it was refused with", [conflict, change(1)], [carryOut, unanswered]],
])("GroupCommit.commit() tells a change its own fate, not that of %s", async (_, changes, fates) => {
  using fixture = await Fixture.open(250);
  await fixture.sizes([change(9)]);
  await Promise.all([1, 2].map(() => fixture.store.commit(() => {})));
  const left = [...fates];
  fixture.disturbance = { commit: (commit) => (left.shift() ?? carryOut)(commit) };

  const told = await Promise.all(
    changes.map((change) => certain(fixture.group.commit(change)).then(({ ok }) => ok, () => false)),
  );

  assertEquals(told, await Promise.all(upTo(2).map((name) => fixture.has(["rows", name, 0]))));
});
