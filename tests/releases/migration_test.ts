import { assertEquals, assertGreater, assertGreaterOrEqual } from "@std/assert";
import { Connection } from "../../src/engine/connection.ts";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { pause } from "../../src/base/time.ts";
import { type KnownVersions, requireSchema, type SchemaVersion } from "../../src/engine/schema_version.ts";
import { Store } from "../../src/engine/store.ts";
import { PET_STATUSES } from "../../src/pets/pet.ts";
import { CATALOGUE_VERSION, PetStore } from "../../src/pets/pet_store.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { type CommitResult, FakeKv, type Network } from "../support/fake_kv.ts";
import { seededRandom, VirtualTime } from "../support/time.ts";
import { AFTER, BEFORE, idsOfCategory, indexed, Migration, QUIET } from "./category_index.ts";

/** MIGRATIONS is the number of rounds, each with a kill after every commit. MIGRATIONS_SEED seeds the first. */
const ROUNDS = Number(Deno.env.get("MIGRATIONS") ?? 3);
const FIRST_SEED = Number(Deno.env.get("MIGRATIONS_SEED") ?? 1);

const CATEGORIES = 3;
/** Approximate number of animals. */
const ANIMALS = 8;
/** How long both releases write at least, in ms. */
const TOGETHER = 15_000;

/** The network between a process and KV. It has random latency, and is silent while it is cut. */
class Line implements Network {
  isCut = false;
  /** Number of commits that apply before it is cut. */
  left = Infinity;
  /** Number of commits that have applied. */
  applied = 0;
  /** When the last of them was sent, in virtual time. */
  lastSent = 0;
  /** Commits that may still arrive. */
  readonly held: Set<() => CommitResult> = new Set();
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  async read(): Promise<void> {
    await this.#travel();
  }

  async commit(apply: () => CommitResult): Promise<CommitResult> {
    const sent = this.#world.time.now;
    this.held.add(apply);
    await this.#travel();
    this.held.delete(apply);
    const result = apply();
    if (result.ok) {
      this.applied++;
      this.lastSent = sent;
      if (--this.left === 0) this.isCut = true;
    }
    await this.#travel();
    // Deno's client repeats a commit if its reply is lost.
    return this.#world.below(10) === 0 ? apply() : result;
  }

  async #travel(): Promise<void> {
    await pause(this.#world.below(30));
    if (this.isCut) await new Promise(() => {});
  }
}

/** A process of one of the releases. */
class Process {
  readonly line: Line;
  readonly store: Store;
  readonly migration: Migration;
  readonly #pets: PetStore;
  readonly #transactions: Transactions;
  readonly #world: World;

  constructor(world: World, line: Line, connection: Connection, schema: SchemaVersion) {
    const { clock } = world;
    this.#world = world;
    this.line = line;
    this.store = new Store(connection, { maxChecks: 10, clock, schema });
    this.migration = new Migration(this.store, clock);
    this.#transactions = new Transactions(this.store, { clock });
    this.#pets = new PetStore(this.store, this.#transactions, { key: CATALOGUE_VERSION, version: "" });
  }

  /** Starts a process that is cut off after its first `commits` commits. */
  static async start(world: World, known: KnownVersions, commits: number = Infinity): Promise<Process> {
    const line = new Line(world);
    const connection = new Connection([world.kv.connect(line)]);
    const process = new Process(world, line, connection, await requireSchema(connection, true, known));
    await process.store.probe();
    line.left = commits;
    return process;
  }

  /** Adds, changes or removes an animal at random. */
  async write(): Promise<void> {
    const { below, animals } = this.#world;
    const pet = { name: "Rex", categoryId: below(CATEGORIES), status: PET_STATUSES[below(3)] ?? "sold" };
    const id = Number(animals[below(ANIMALS)]?.split(",")[1]);
    const change = below(8) === 0
      ? this.#pets.changing(id, () => null)
      : this.#pets.changing(id, (owned) => owned && { ...owned.pet, ...pet });
    const transaction = id > 0 ? change : this.#pets.adding({ id: await this.#pets.ids.next(), ...pet }, "a");
    const knowsIndex = this.store.schema.known === AFTER;
    await this.#transactions.run<unknown>(knowsIndex ? indexed<unknown>(transaction) : transaction);
  }

  /** Writes until `isOver`. Resolves to the number of confirmed writes. */
  async writeUntil(isOver: () => boolean): Promise<number> {
    let count = 0;
    for (; !isOver(); await pause(this.#world.below(this.#world.pace))) {
      await this.write().then(() => count++, onlyUnavailable);
    }
    return count;
  }
}

/** Processes of both releases on one KV, in virtual time. */
class World implements Disposable {
  readonly time: VirtualTime = new VirtualTime();
  readonly kv: FakeKv = new FakeKv();
  readonly clock: () => number = () => 1_000_000_000 + this.time.now;
  /** Maximum time between two writes of a process, in ms. */
  pace = 2_000;
  /** Returns a random whole number from 0 to `end`, exclusive. */
  readonly below: (end: number) => number;
  readonly #systemRandom: () => number = Math.random;

  constructor(seed: number) {
    Math.random = seededRandom(seed);
    this.below = (end) => Math.floor(Math.random() * end);
  }

  /** Category and ID of every animal, according to its row. */
  get animals(): string[] {
    return this.#keysOf("pets", ([, id], text) => [JSON.parse(text.split("\n")[0] ?? "").categoryId, id]);
  }

  /** Category and ID of every animal, according to the index. */
  get index(): string[] {
    return this.#keysOf("pets_by_category", ([, category, id]) => [category, id]);
  }

  /** All rows except markers. */
  get rows(): ReadonlyMap<string, unknown> {
    return new Map([...this.kv.rows].filter(([, { key: [table] }]) => table !== "commits"));
  }

  #keysOf(table: string, of: (key: Deno.KvKey, text: string) => unknown): string[] {
    const rows = [...this.kv.rows.values()].filter(({ key }) => key[0] === table);
    return rows.map(({ key, value }) =>
      String(of(key, value instanceof Uint8Array ? new TextDecoder().decode(value) : ""))
    ).sort();
  }

  [Symbol.dispose](): void {
    this.time[Symbol.dispose]();
    Math.random = this.#systemRandom;
  }
}

function onlyUnavailable(error: unknown): void {
  if (!(error instanceof StoreUnavailable)) throw error;
}

/**
 * Lets a process of the old release write for a while, and then stop, crash, or hang with commits in flight that may
 * arrive at any time.
 */
async function leave(process: Process, { time, below }: World): Promise<void> {
  const end = time.now + TOGETHER + below(TOGETHER);
  const wrote = process.writeUntil(() => time.now >= end);
  if (below(3) === 0) {
    assertGreater(await wrote, 5);
    await process.store.close();
    process.line.lastSent = -Infinity;
  } else await pause(end - time.now - below(2_000));
  process.line.isCut = true;
  await wrote;
  await pause(below(QUIET));
  if (below(2) === 0) { for (const apply of process.line.held) apply(); }
}

/** Measurements of a migration. */
interface Measurements {
  /** Number of commits of the process that began it. */
  readonly commits: number;
  /** Number of index rows that were missing or wrong before it. */
  readonly faults: number;
}

/** Runs a migration whose first process is killed after `kill` commits. */
async function runMigration(world: World, kill: number): Promise<Measurements> {
  const { time, kv } = world;
  const before = [await Process.start(world, BEFORE), await Process.start(world, BEFORE)];
  const after = [await Process.start(world, AFTER), await Process.start(world, AFTER)];
  let isDone = false;
  const writing = after.map((process) => process.writeUntil(() => isDone));
  const leaving = before.map((process) => leave(process, world));

  const first = await Process.start(world, AFTER, kill);
  let migrator = first;
  let [isRaised, faults] = [false, NaN];
  while (!isDone) {
    const step = await migrator.migration.step().catch(onlyUnavailable);
    isDone = step === "is done";
    if (step !== "waits") world.pace = 30;
    else if (time.now > 2 * TOGETHER) world.pace = 100_000;
    if (step === "waits") await pause(10_000);
    if (migrator.line.isCut) migrator = await Process.start(world, AFTER);
    if (!isRaised && migrator.store.schema.version === 2) {
      isRaised = true;
      for (const { line } of before) assertGreaterOrEqual(time.now - line.lastSent, QUIET);
    }
    if (Number.isNaN(faults) && kv.value("migrations", 2) !== undefined) {
      faults = new Set(world.animals).symmetricDifference(new Set(world.index)).size;
    }
  }
  assertEquals(world.index, world.animals);
  await Promise.all([...writing, ...leaving]);

  const { rows } = world;
  for (const process of before) {
    for (const apply of process.line.held) assertEquals(apply().ok, false);
    process.line.isCut = false;
    let isUnknown = false;
    process.store.schema.superseded.then(() => isUnknown = true);
    await process.writeUntil(() => isUnknown);
  }
  for (const repeat of [...kv.repetitions]) repeat();
  assertEquals(world.rows, rows);
  assertEquals(world.index, world.animals);
  assertEquals(
    (await idsOfCategory(migrator.store, 1)).length,
    world.animals.filter((name) => name.startsWith("1,")).length,
  );
  return { commits: first.line.applied, faults };
}

Deno.test("migration indexes every animal while both releases write, even if killed after any commit", async () => {
  let faults = 0;
  for (let round = FIRST_SEED; round < FIRST_SEED + ROUNDS; round++) {
    for (let [kill, commits] = [0, 1]; kill <= commits; kill++) {
      using world = new World(100 * round + kill);
      try {
        const measured = await world.time.until(runMigration(world, kill || Infinity), 3_600_000);
        if (kill === 0) commits = measured.commits;
        faults += measured.faults;
      } catch (cause) {
        throw new Error(`With MIGRATIONS_SEED=${round} MIGRATIONS=1, killed after commit ${kill}`, { cause });
      }
    }
  }
  assertGreater(faults, 0);
});
