import { assert, assertEquals } from "@std/assert";
import { CommitInDoubt, type CommitResult as Reported } from "../../../src/kv/commit.ts";
import { Connection } from "../../../src/kv/connection.ts";
import { pause, StoreUnavailable } from "../../../src/kv/deadline.ts";
import { Store } from "../../../src/kv/store.ts";
import { type CommitResult, FakeKv, type Network } from "../../support/fake_kv.ts";
import { seededRandom, VirtualTime } from "../../support/time.ts";

/** Number of schedules of each kind, and the seed of the first one. Each later one has the next seed. */
const SCHEDULES = Number(Deno.env.get("SCHEDULES") ?? 12);
const FIRST_SEED = Number(Deno.env.get("SCHEDULES_SEED") ?? 1);

const CALLERS = 4;
const HANDLES = 2;
/** Lengths of the phases, in ms: faults, no faults, and recovery after some handles have received wrong metadata. */
const FAULTY = 60_000;
const QUIET = 20_000;
const RECOVERY = 60_000;
/** Maximum delay of a commit that lands late, in ms. */
const LATEST = 20_000;

/** What happens to an operation. */
type Fate = "well" | "slow" | "hangs" | "fails" | "fails when done" | "reply lost" | "lands late" | "locked";
/** The lasting condition of a handle: its connection is dead, or it received wrong metadata. */
type Condition = "well" | "dead" | "nonsense";

const ON_SERVER: readonly Fate[] = ["slow", "hangs", "fails", "fails when done", "reply lost", "lands late"];
/** A file loses no replies, and operations that hang on it eventually end. */
const ON_FILE: readonly Fate[] = ["slow", "hangs", "fails", "locked", "lands late"];

/** A commit, and the result that its caller got: whether it applied, or undefined if that stayed in doubt. */
interface Attempt {
  readonly number: number;
  reported: boolean | undefined;
  readonly findOut?: () => Promise<Reported>;
}

/** Random faults, drawn from a seed, on a KV in virtual time. */
class Schedule {
  readonly time: VirtualTime = new VirtualTime();
  readonly kv: FakeKv = new FakeKv();
  readonly isServer: boolean;
  readonly store: Store;
  readonly attempts: Attempt[] = [];
  readonly #random: () => number;
  readonly #lines: Line[] = [];
  /** Resolves when the faults end. */
  readonly over: PromiseWithResolvers<void> = Promise.withResolvers();
  isFaulty = true;

  constructor(seed: number, isServer: boolean) {
    this.#random = seededRandom(seed);
    this.isServer = isServer;
    const options = isServer ? { reopen: (signal: AbortSignal) => this.#reopen(signal) } : {};
    const connection = new Connection(this.#open(), options);
    this.store = new Store(connection, { maxChecks: 10, clock: () => this.time.now });
  }

  /** A random integer from 0 (inclusive) to `end` (exclusive). */
  below(end: number): number {
    return Math.floor(this.#random() * end);
  }

  /** Draws the fate of an operation that starts now. */
  fate(): Fate {
    const fates = this.isServer ? ON_SERVER : ON_FILE;
    return this.isFaulty && this.#random() < 0.25 ? fates[this.below(fates.length)] ?? "well" : "well";
  }

  /** Breaks handles for good from time to time. */
  async breakHandles(): Promise<void> {
    while (this.isFaulty && this.isServer) {
      await pause(this.below(20_000));
      if (!this.isFaulty) return;
      this.breakLast(1 + this.below(HANDLES), this.#random() < 0.5 ? "dead" : "nonsense");
    }
  }

  /** Breaks the `count` handles that were opened last. */
  breakLast(count: number, condition: Condition): void {
    for (const line of this.#lines.slice(-count)) line.condition = condition;
  }

  /** Commits and reads in turn while `isOpen` returns true. */
  async call(isOpen: () => boolean): Promise<void> {
    while (isOpen()) {
      await this.attempt().catch(onlyUnavailable);
      await this.store.get(["nothing"]).catch(onlyUnavailable);
      await pause(this.below(1_500));
    }
  }

  /** Makes a commit that counts itself and may lose a race. Resolves to whether it was reported to have applied. */
  async attempt(): Promise<boolean> {
    const number = this.attempts.length;
    const attempt: Attempt = { number, reported: false };
    this.attempts.push(attempt);
    const shared = ["shared", this.below(3)];
    const row = await this.store.get(shared);
    try {
      const { ok } = await this.store.commit((operation) => {
        operation.sum(["count", number], 1n);
        operation.check({ key: shared, versionstamp: row?.versionstamp ?? null }).set(shared, number);
      }, [shared]);
      attempt.reported = ok;
    } catch (error) {
      if (error instanceof CommitInDoubt) {
        this.attempts[number] = { number, reported: undefined, findOut: error.findOut };
      }
      throw error;
    }
    return attempt.reported;
  }

  /** Number of times that a commit has applied. */
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

/** The network between one handle and KV. */
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
    // Deno's client repeats a commit whose reply it did not receive.
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

    // Every handle works again.
    const calm = Array.from({ length: 4 * HANDLES }, async () => {
      await schedule.attempt();
      await schedule.store.get(["nothing"]);
    });
    await time.until(Promise.all(calm), 1_000);
    await time.advance(LATEST + RECOVERY);
    for (const attempt of schedule.attempts) {
      const { number, findOut } = attempt;
      const found = attempt.reported ?? (findOut && (await time.until(findOut(), 1_000)).ok);
      assertEquals(schedule.count(number), found ? 1n : 0n, `Commit ${number} was reported as ${found}`);
    }
    for (const repeat of [...schedule.kv.repetitions]) assertEquals(repeat().ok, false);
    assert(schedule.attempts.filter(({ reported }) => reported).length > 10);
  } finally {
    Math.random = random;
  }
}

for (const [kind, isServer] of [["a server", true], ["a file", false]] as const) {
  Deno.test(`Store on ${kind} reports true results, applies nothing twice, and recovers from random faults`, async () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + SCHEDULES; seed++) {
      try {
        await play(seed, isServer);
      } catch (cause) {
        throw new Error(`With SCHEDULES_SEED=${seed} SCHEDULES=1`, { cause });
      }
    }
  });
}
