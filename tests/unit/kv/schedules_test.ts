import { assert, assertEquals } from "@std/assert";
import { CommitInDoubt, type CommitResult as Told } from "../../../src/kv/commit.ts";
import { Connection } from "../../../src/kv/connection.ts";
import { pause, StoreUnavailable } from "../../../src/kv/deadline.ts";
import { Store } from "../../../src/kv/store.ts";
import { type CommitResult, FakeKv, type Network } from "../../support/fake_kv.ts";
import { seededRandom, VirtualTime } from "../../support/time.ts";

/** How many schedules of each kind are played: SCHEDULES; and the seed of the first, of which each has the next: SCHEDULES_SEED. */
const SCHEDULES = Number(Deno.env.get("SCHEDULES") ?? 12);
const FIRST_SEED = Number(Deno.env.get("SCHEDULES_SEED") ?? 1);

const CALLERS = 4;
const HANDLES = 2;
/** How long faults go on; how long after that handles get nonsense once more; and how long it takes then, in ms. */
const FAULTY = 60_000;
const QUIET = 20_000;
const RECOVERY = 60_000;
/** Longest time by which a commit lands late, in ms. */
const LATEST = 20_000;

/** What becomes of one operation. */
type Fate = "well" | "slow" | "hangs" | "fails" | "fails when done" | "reply lost" | "lands late" | "locked";
/** What has become of a handle for good: its connection is dead, or it was told nonsense about its database. */
type Condition = "well" | "dead" | "nonsense";

const ON_SERVER: readonly Fate[] = ["slow", "hangs", "fails", "fails when done", "reply lost", "lands late"];
/** A file has no replies that get lost; what hangs there goes on in the end. */
const ON_FILE: readonly Fate[] = ["slow", "hangs", "fails", "locked", "lands late"];

/** A commit that a caller asked for, and what it was told of it; undefined where it is in doubt for good. */
interface Asked {
  readonly number: number;
  told: boolean | undefined;
  readonly findOut?: () => Promise<Told>;
}

/** Faults that chance makes of a seed, on a KV in virtual time. */
class Schedule {
  readonly time: VirtualTime = new VirtualTime();
  readonly kv: FakeKv = new FakeKv();
  readonly isServer: boolean;
  readonly store: Store;
  readonly asked: Asked[] = [];
  readonly #random: () => number;
  readonly #lines: Line[] = [];
  /** Resolves when faults are over. */
  readonly over: PromiseWithResolvers<void> = Promise.withResolvers();
  isFaulty = true;

  constructor(seed: number, isServer: boolean) {
    this.#random = seededRandom(seed);
    this.isServer = isServer;
    const options = isServer ? { reopen: (signal: AbortSignal) => this.#reopen(signal) } : {};
    const connection = new Connection(this.#open(), options);
    this.store = new Store(connection, { maxChecks: 10, clock: () => this.time.now });
  }

  /** A whole number from 0 up to `end`. */
  below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  /** What becomes of an operation that starts now. */
  fate(): Fate {
    const fates = this.isServer ? ON_SERVER : ON_FILE;
    return this.isFaulty && this.#random() < 0.25 ? fates[this.below(fates.length)] ?? "well" : "well";
  }

  /** Has handles break for good from time to time. */
  async breakHandles(): Promise<void> {
    while (this.isFaulty && this.isServer) {
      await pause(this.below(20_000));
      if (!this.isFaulty) return;
      this.breakLast(1 + this.below(HANDLES), this.#random() < 0.5 ? "dead" : "nonsense");
    }
  }

  /** Has the last `count` handles that were opened break. */
  breakLast(count: number, condition: Condition): void {
    for (const line of this.#lines.slice(-count)) line.condition = condition;
  }

  /** Commits what can be counted, and reads, one after the other, as long as `goesOn`. */
  async call(goesOn: () => boolean): Promise<void> {
    while (goesOn()) {
      await this.attempt().catch(onlyUnavailable);
      await this.store.get(["nothing"]).catch(onlyUnavailable);
      await pause(this.below(1_500));
    }
  }

  /** A commit that counts itself and is refused where another has been faster; resolves to whether it was told so. */
  async attempt(): Promise<boolean> {
    const number = this.asked.length;
    const asked: Asked = { number, told: false };
    this.asked.push(asked);
    const shared = ["shared", this.below(3)];
    const row = await this.store.get(shared);
    try {
      const { ok } = await this.store.commit((operation) => {
        operation.sum(["count", number], 1n);
        operation.check({ key: shared, versionstamp: row?.versionstamp ?? null }).set(shared, number);
      }, [shared]);
      asked.told = ok;
    } catch (error) {
      if (error instanceof CommitInDoubt) {
        this.asked[number] = { number, told: undefined, findOut: error.findOut };
      }
      throw error;
    }
    return asked.told;
  }

  /** How often a commit has applied. */
  count(number: number): bigint {
    const value = this.kv.value("count", number);
    return value instanceof Deno.KvU64 ? value.value : 0n;
  }

  #open(): Deno.Kv[] {
    return Array.from({ length: HANDLES }, () => {
      const line = new Line(this);
      this.#lines.push(line);
      return this.kv.connect(line);
    });
  }

  async #reopen(signal: AbortSignal): Promise<Deno.Kv[]> {
    do {
      signal.throwIfAborted();
      await pause(500 + this.below(2_000));
    } while (this.isFaulty && this.#random() < 0.5);
    return this.#open();
  }
}

/** The way of one handle to the KV. */
class Line implements Network {
  condition: Condition = "well";
  readonly #schedule: Schedule;

  constructor(schedule: Schedule) {
    this.#schedule = schedule;
  }

  async read(): Promise<void> {
    await this.#pass(this.#schedule.fate());
    await pause(5);
  }

  async commit(apply: () => CommitResult): Promise<CommitResult> {
    const fate = this.#schedule.fate();
    if (fate === "lands late" || (this.condition === "dead" && this.#schedule.below(2) === 0)) {
      await pause(this.#schedule.below(LATEST));
      apply();
      return await this.#hang();
    }
    await this.#pass(fate);
    const result = apply();
    if (fate === "fails when done") throw new TypeError("connection reset");
    await pause(fate === "slow" ? this.#schedule.below(8_000) : 5);
    // Deno's client repeats a commit whose reply it has not got.
    return fate === "reply lost" ? apply() : result;
  }

  async #pass(fate: Fate): Promise<void> {
    if (this.condition === "nonsense") throw new TypeError("Metadata response body invalid");
    await pause(fate === "slow" ? this.#schedule.below(8_000) : 5);
    if (this.condition === "dead" || fate === "hangs") await this.#hang();
    if (fate === "fails") throw new TypeError("disk I/O error");
    if (fate === "locked") throw new TypeError("database is locked");
  }

  async #hang(): Promise<never> {
    if (!this.#schedule.isServer) {
      await this.#schedule.over.promise;
      throw new TypeError("disk I/O error");
    }
    return await new Promise(() => {});
  }
}

function onlyUnavailable(error: unknown): void {
  if (!(error instanceof StoreUnavailable)) throw error;
}

async function play(seed: number, isServer: boolean): Promise<void> {
  const schedule = new Schedule(seed, isServer);
  using time = schedule.time;
  const { random } = Math;
  Math.random = seededRandom(seed);
  try {
    const end = FAULTY + QUIET + RECOVERY;
    const callers = Array.from({ length: CALLERS }, () => schedule.call(() => time.now < end));
    schedule.breakHandles();
    await time.advance(FAULTY);
    schedule.isFaulty = false;
    schedule.over.resolve();
    await time.advance(QUIET);
    if (isServer) schedule.breakLast(1 + schedule.below(HANDLES), "nonsense");
    await time.until(Promise.all(callers), 2 * RECOVERY);

    // Everything is served again, by every handle.
    const calm = Array.from({ length: 4 * HANDLES }, async () => {
      await schedule.attempt();
      await schedule.store.get(["nothing"]);
    });
    await time.until(Promise.all(calm), 1_000);
    await time.advance(LATEST + RECOVERY);
    for (const asked of schedule.asked) {
      const { number, findOut } = asked;
      const found = asked.told ?? (findOut && (await time.until(findOut(), 1_000)).ok);
      assertEquals(schedule.count(number), found ? 1n : 0n, `Commit ${number} was told as ${found}`);
    }
    for (const repeat of [...schedule.kv.repetitions]) assertEquals(repeat().ok, false);
    assert(schedule.asked.filter(({ told }) => told).length > 10);
  } finally {
    Math.random = random;
  }
}

for (const [kind, isServer] of [["a server", true], ["a file", false]] as const) {
  Deno.test(`Store on ${kind} tells the truth, applies nothing twice, and serves again, whatever faults there were`, async () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + SCHEDULES; seed++) {
      try {
        await play(seed, isServer);
      } catch (cause) {
        throw new Error(`With SCHEDULES_SEED=${seed} SCHEDULES=1`, { cause });
      }
    }
  });
}
