import { assert, assertEquals, assertGreater } from "@std/assert";
import type { Backend, BackendOptions } from "../../src/engine/backend.ts";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { pause } from "../../src/base/time.ts";
import { FileBackend } from "../../src/engine/file.ts";
import { decodeJson, encodeJson, type Entry } from "../../src/engine/row.ts";
import { SCHEMA } from "../../src/engine/schema_version.ts";
import { Store } from "../../src/engine/store.ts";
import {
  type KnownRow,
  type Rows,
  type Transaction,
  Unresolved,
  type Write,
} from "../../src/engine/transaction.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import type { VersionRow } from "../../src/engine/versions.ts";
import { type CommitResult, fail, FakeKv, hang, locked, type Network } from "../support/fake_kv.ts";
import { seededRandom, VirtualTime } from "../support/time.ts";

/** A random transaction. Its effects depend only on this plan and its rows. */
interface Plan {
  readonly id: number;
  /** Numbers of the rows that it decides on. */
  readonly reads: readonly number[];
  /** Number of a row that it decides on, and that others create without reading it. */
  readonly awaits: number | undefined;
  /** Number of a row that it creates without reading it. */
  readonly creates: number | undefined;
  readonly bumps: boolean;
  /** Added to the sum of its rows; the total modulo 8 decides whether it throws, writes nothing or deletes a row. */
  readonly salt: number;
}

/** A run of a plan, and its outcome. */
interface Call {
  readonly plan: Plan;
  /** Number of commits that had applied when it began, and when it was answered. */
  readonly began: number;
  answered: number;
  readonly deadline: number;
  answer: "none" | "result" | "refused" | "out of time" | "unresolved" | "unavailable";
  /** What the plan found in its rows. */
  finding: string;
  committed: boolean;
  rows: readonly KnownRow[];
}

/** The rows at one moment: their numbers by name. */
type State = ReadonlyMap<string, number>;

/** The message is what the plan found. */
class Refused extends Error {}

class OutOfTime extends Error {}

/** Number of random histories, each from its own seed. */
const HISTORIES = Number(Deno.env.get("HISTORIES") ?? 60);
const FIRST = Number(Deno.env.get("FIRST_SEED") ?? 1);
const TRANSACTIONS = 150;
const ROWS = 6;
const VERSION = ["version"];
const ENGINES = 3;
const HANDLES = 2;
const PATIENCE = 300;
const KV_PATIENCE = 200;
/** How long an operation can hang on a file, in ms. */
const HANG = 2_000;
/** How long it takes to find out about the last commits in doubt, and to replace the last broken handles, in ms. */
const RECOVERY = 60_000;

const rowKey = (row: number): Deno.KvKey => ["row", row];
const newKey = (created: number): Deno.KvKey => ["new", created];
const logKey = (id: number): Deno.KvKey => ["log", id];
const nameOf = (key: Deno.KvKey): string => JSON.stringify(key);

/** Decides as planned. */
function decide(plan: Plan, rows: Rows, write: Write): string {
  const numbers = plan.reads.map((row) => numberIn(rows.get(rowKey(row))));
  if (plan.awaits !== undefined) numbers.push(numberIn(rows.get(newKey(plan.awaits))));
  const sum = numbers.reduce((total, number) => total + number + 1, 0);
  const finding = `${plan.id}: ${numbers}`;
  const remainder = (sum + plan.salt) % 8;
  if (numbers.length > 0 && remainder >= 2 && remainder < 4) return finding;
  write.set(logKey(plan.id), encodeJson(0));
  if (plan.creates !== undefined) write.set(newKey(plan.creates), encodeJson(plan.id));
  plan.reads.forEach((row, index) => {
    if (index === 0 && remainder === 4) write.delete(rowKey(row));
    else if (index < 2) write.set(rowKey(row), encodeJson((sum * 7 + plan.id) % 1_000));
  });
  if (plan.bumps) write.bump(ROW);
  if (numbers.length > 0 && remainder < 2) throw new Refused(finding); // Its changes are discarded.
  return finding;
}

/** The version row of the process whose plan is running. */
let ROW: VersionRow = { key: VERSION, version: "" };

function numberIn(entry: Entry | null): number {
  return entry ? decodeJson<number>(entry) : -1;
}

/** Opens a backend on a server, with handles from `open`. */
export type OpenServer = (open: () => Deno.Kv[], options: BackendOptions) => Backend;

/** Three engines on one KV, random calls to them, and random faults of their networks. */
class Referee {
  readonly calls: Call[] = [];
  readonly #kv: FakeKv = new FakeKv();
  readonly #random: () => number;
  readonly #time: VirtualTime;
  readonly #engines: readonly Engine[];
  /** Writes of foreign processes, by the number of their row in the log. */
  readonly #foreign: Map<number, readonly [row: number, value: number]> = new Map();
  readonly #faults: string[] = [];
  readonly #lines: Line[] = [];
  /** Applies each commit again that a server has applied. */
  readonly #repetitions: (() => CommitResult)[] = [];
  /** On average, one in this number of operations is disturbed. */
  readonly #rarity: number;
  #isFaulty = true;
  #id = 0;
  #created = 0;

  /** With `openServer`, most engines are on a server, and the others on its file. */
  constructor(seed: number, time: VirtualTime, openServer?: OpenServer) {
    this.#random = seededRandom(seed);
    this.#rarity = 10 + this.#below(60);
    this.#time = time;
    this.#engines = Array.from({ length: ENGINES }, () => {
      const options = { clock: () => 0, deadline: KV_PATIENCE };
      if (openServer && this.#below(4) > 0) return new Engine(openServer(() => this.#open(true), options));
      const [kv, reader] = this.#open(false);
      assert(kv);
      return new Engine(new FileBackend(kv, { ...options, reader }));
    });
  }

  /** Runs `count` transactions, a few at a time, until all have ended. Then every engine must work again. */
  async run(count: number): Promise<void> {
    while (this.#id < count) {
      for (let some = this.#below(12); some > 0; some--) this.#call();
      if (this.#below(3) === 0) await this.#meddle();
      if (this.#below(40) === 0) await this.#sweep();
      if (this.#below(20) === 0) await this.#rewriteSchema();
      if (this.#below(this.#rarity) === 0) this.#breakHandle();
      await this.#time.advance(this.#below(30));
    }
    this.#isFaulty = false;
    await this.#time.advance(RECOVERY);
    assertEquals(this.calls.filter(({ answer }) => answer === "none"), []);
    this.#breakHandle();
    const uses = () =>
      this.#engines.flatMap((engine) => Array.from({ length: 4 * HANDLES }, () => engine.use()));
    for (let count = 0; count < 10; count++) {
      await this.#time.until(Promise.allSettled(uses()), RECOVERY);
      await this.#time.advance(KV_PATIENCE);
    }
    await this.#time.advance(RECOVERY);
    await this.#time.until(Promise.all(uses()), KV_PATIENCE);
  }

  /** Breaks one of the handles that were opened last, if they are on a server, for good. */
  #breakHandle(): void {
    const line = this.#lines.at(-1 - this.#below(HANDLES));
    if (line?.isServer) line.condition = this.#below(2) === 0 ? "dead" : "nonsense";
  }

  #engine(): Engine {
    const engine = this.#engines[this.#below(ENGINES)];
    assert(engine);
    return engine;
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  /** Up to `count` different numbers below a limit. */
  #some(count: number, limit: number): number[] {
    return [...new Set(Array.from({ length: count }, () => this.#below(limit)))];
  }

  #plan(): Plan {
    const isBlind = this.#below(3) === 0;
    return {
      id: ++this.#id,
      reads: isBlind ? [] : this.#some(1 + this.#below(3), ROWS),
      awaits: isBlind || this.#below(3) === 0 ? undefined : this.#created + this.#below(2),
      creates: isBlind || this.#below(8) === 0 ? this.#created++ : undefined,
      bumps: this.#below(12) === 0,
      salt: this.#below(8),
    };
  }

  #call(): void {
    const engine = this.#engine();
    const plan = this.#plan();
    const call: Call = {
      plan,
      began: this.#kv.repetitions.length,
      answered: Infinity,
      deadline: this.#time.now + 20 + this.#below(PATIENCE),
      answer: "none",
      finding: "",
      committed: false,
      rows: [],
    };
    this.calls.push(call);
    const mayBegin = () => {
      if (this.#time.now > call.deadline) throw new OutOfTime();
    };
    const transaction: Transaction<string> = {
      reads: [...plan.reads.map(rowKey), ...(plan.awaits === undefined ? [] : [newKey(plan.awaits)])]
        .map((key) => this.#below(4) === 0 ? engine.known.get(nameOf(key)) ?? key : key),
      decide(rows, write) {
        ROW = engine.row;
        return decide(plan, rows, write);
      },
    };
    engine.transactions.run(transaction, { mayBegin }).then(
      ({ result, committed, rows }) => {
        this.#answer(call, "result", result, committed, rows);
        for (const row of rows) engine.remember(row);
        if (plan.bumps && committed) {
          const isNoted = engine.row.version >= this.#stampOf(logKey(plan.id));
          if (!isNoted) this.#faults.push(`${plan.id} returned before its new version was noted`);
        }
      },
      (error) => {
        if (error instanceof Refused) this.#answer(call, "refused", error.message);
        else if (error instanceof OutOfTime) this.#answer(call, "out of time");
        else if (error instanceof Unresolved) this.#answer(call, "unresolved");
        else if (error instanceof StoreUnavailable) this.#answer(call, "unavailable");
        else throw error;
      },
    );
  }

  #answer(
    call: Call,
    answer: Call["answer"],
    finding: string = "",
    committed: boolean = false,
    rows: readonly KnownRow[] = [],
  ): void {
    Object.assign(call, { answer, finding, committed, rows, answered: this.#kv.repetitions.length });
  }

  /** Writes a row as a foreign process, without reading it. */
  async #meddle(): Promise<void> {
    const id = ++this.#id;
    const [row, value] = [this.#below(ROWS), this.#below(1_000)];
    this.#foreign.set(id, [row, value]);
    await this.#kv.connect().atomic().check({ key: logKey(id), versionstamp: null })
      .set(rowKey(row), encodeJson(value)).set(logKey(id), encodeJson(0)).commit();
  }

  /** Removes every marker, as a process does whose clock is days ahead. */
  async #sweep(): Promise<void> {
    const operation = this.#kv.connect().atomic();
    for (const marker of this.#kv.rows.values()) {
      if (marker.key[0] === "commits") operation.check(marker).delete(marker.key);
    }
    await operation.commit();
  }

  /** Writes the row of the schema version, unchanged. */
  async #rewriteSchema(): Promise<void> {
    await this.#kv.connect().atomic().set(SCHEMA, encodeJson({ version: 1 })).commit();
  }

  /** Opens the handles of an engine. */
  #open(isServer: boolean): Deno.Kv[] {
    return Array.from({ length: HANDLES }, () => {
      const line = new Line(
        isServer,
        () => this.#fate(isServer),
        (limit) => this.#below(limit),
        (apply) => this.#repetitions.push(apply),
      );
      this.#lines.push(line);
      return this.#watched(this.#kv.connect(line));
    });
  }

  /** Draws the fate of an operation that starts now. */
  #fate(isServer: boolean): Fate {
    const fates = isServer ? ON_SERVER : ON_FILE;
    return this.#isFaulty && this.#below(this.#rarity) === 0
      ? fates[this.#below(fates.length)] ?? "well"
      : "well";
  }

  /** The same handle, which records transactions that are sent to KV after their deadline. */
  #watched(kv: Deno.Kv): Deno.Kv {
    const atomic = kv.atomic.bind(kv);
    return Object.assign(kv, {
      atomic: () => {
        const operation = atomic();
        const [set, commit] = [operation.set, operation.commit];
        const ids: unknown[] = [];
        return Object.assign(operation, {
          set: (key: Deno.KvKey, value: unknown) => {
            if (key[0] === "log") ids.push(key[1]);
            return set(key, value);
          },
          commit: () => {
            for (const { plan, deadline } of this.calls) {
              const isLate = ids.includes(plan.id) && this.#time.now > deadline;
              if (isLate) this.#faults.push(`${plan.id} was sent to KV too late`);
            }
            return commit();
          },
        });
      },
    });
  }

  #stampOf(key: Deno.KvKey): string {
    return this.#kv.rows.get(nameOf(key))?.versionstamp ?? "";
  }

  /** Replays all commits, and compares every answer with the expected one. */
  check(): void {
    assertEquals(this.#faults, []);
    const { states, applied } = this.#replay();
    for (const call of this.calls) {
      const { plan, answer, committed, began, answered } = call;
      const at = applied.get(plan.id);
      if (answer === "result" && committed) {
        assert(at !== undefined && at.commit <= answered, `${plan.id} was reported as committed, but is not`);
        assertEquals(call.finding, at.finding, `Result of ${plan.id}`);
      } else if (answer === "result" || answer === "refused") {
        assertEquals(at, undefined, `${plan.id} was reported as unchanged, but is committed`);
        assert(
          this.#isTrueSometime(call, states, began, answered),
          `Outcome of ${plan.id}: ${call.finding}`,
        );
      } else if (answer !== "unresolved") {
        assertEquals(at, undefined, `${plan.id} was ${answer}`);
      }
      this.#checkRows(call, states);
    }
    const last = states.at(-1)?.at(-1);
    const values = [...this.#kv.rows.values()].filter(({ key }) => key[0] === "row" || key[0] === "new");
    assertEquals(
      new Map(values.map(({ key, ...row }) => [nameOf(key), numberIn({ key, ...row })])),
      last,
    );
    // The first commit in a lane sets only its marker, which might have been removed.
    const rows = () => [...this.#kv.rows.values()].filter(({ key: [table] }) => table !== "commits");
    const before = rows();
    for (const repeat of this.#repetitions) repeat();
    assertEquals(rows(), before);
  }

  /** Checks that each row that a call returned has the content of its version. */
  #checkRows({ plan, rows }: Call, states: readonly (readonly State[])[]): void {
    for (const { key, entry } of rows) {
      if (entry === null) continue;
      const state = states[Number(entry.versionstamp)]?.at(-1);
      assertEquals(numberIn(entry), state?.get(nameOf(key)), `A row shown to ${plan.id}: ${key}`);
    }
  }

  #isTrueSometime(
    { plan, finding }: Call,
    states: readonly (readonly State[])[],
    began: number,
    answered: number,
  ): boolean {
    return states.slice(began, answered + 1).flat().some((state) => decideOn(plan, state).found === finding);
  }

  /** The states after each commit, one per transaction in it, and the commit in which each transaction applied. */
  #replay(): {
    states: State[][];
    applied: Map<number, { commit: number; finding: string }>;
  } {
    const applied = new Map<number, { commit: number; finding: string }>();
    const log = [...this.#kv.rows.values()].filter(({ key }) => key[0] === "log");
    const byCommit = Map.groupBy(log, ({ versionstamp }) => Number(versionstamp));
    const plans = new Map(this.calls.map(({ plan }) => [plan.id, plan]));
    let state: State = new Map();
    const states = [[state]];
    for (let commit = 1; commit <= this.#kv.repetitions.length; commit++) {
      const within: State[] = [];
      for (const { key } of byCommit.get(commit) ?? []) {
        const id = Number(key[1]);
        const [row, value] = this.#foreign.get(id) ?? [];
        if (row !== undefined && value !== undefined) {
          state = new Map([...state, [nameOf(rowKey(row)), value]]);
        } else {
          const plan = plans.get(id);
          assert(plan !== undefined);
          const { found, after, isRefused } = decideOn(plan, state);
          assert(!isRefused, `${id} committed although it should have refused: ${found}`);
          applied.set(id, { commit, finding: found });
          state = after;
        }
        within.push(state);
      }
      states.push(within.length > 0 ? within : [state]);
    }
    return { states, applied };
  }
}

/** What happens to an operation. */
type Fate =
  | "well"
  | "hangs"
  | "fails"
  | "fails when done"
  | "gets no reply"
  | "repeated"
  | "lands late"
  | "locked";

const ON_SERVER: readonly Fate[] = [
  "hangs",
  "fails",
  "fails when done",
  "gets no reply",
  "repeated",
  "repeated",
  "repeated",
  "lands late",
];
/** A file loses no replies, and whatever hangs on it ends at some time. */
const ON_FILE: readonly Fate[] = ["hangs", "fails", "locked", "locked", "lands late"];

/** The network between one handle and KV. It loses, repeats and delays messages. */
class Line implements Network {
  /** Whether every operation hangs, because the connection is dead, or fails, because it received wrong metadata. */
  condition: "well" | "dead" | "nonsense" = "well";
  readonly isServer: boolean;
  readonly #fate: () => Fate;
  readonly #below: (limit: number) => number;
  /** Called with each commit that a server applies. */
  readonly #onApplied: (apply: () => CommitResult) => void;

  constructor(
    isServer: boolean,
    fate: () => Fate,
    below: (limit: number) => number,
    onApplied: (apply: () => CommitResult) => void,
  ) {
    this.isServer = isServer;
    this.#fate = fate;
    this.#below = below;
    this.#onApplied = onApplied;
  }

  async read(): Promise<void> {
    await this.#pass(this.#fate());
  }

  async commit(applyOnce: () => CommitResult): Promise<CommitResult> {
    const fate = this.#fate();
    const apply = () => {
      const result = applyOnce();
      if (result.ok && this.isServer) this.#onApplied(applyOnce);
      return result;
    };
    if (fate === "lands late" || (this.condition === "dead" && this.#below(2) === 0)) {
      await pause(this.#below(2 * KV_PATIENCE));
      const result = apply();
      return this.isServer ? await hang() : result;
    }
    await this.#pass(fate);
    const result = apply();
    if (fate === "fails when done") await fail();
    if (fate === "gets no reply") await this.#hang();
    await pause(this.#below(15));
    return fate === "repeated" ? apply() : result; // A repetition that no process notices.
  }

  async #pass(fate: Fate): Promise<void> {
    if (this.condition === "nonsense" || fate === "fails") await fail();
    await pause(this.#below(15));
    if (this.condition === "dead" || fate === "hangs") await this.#hang();
    if (fate === "locked") await locked();
  }

  async #hang(): Promise<never> {
    if (this.isServer) return await hang();
    await pause(this.#below(HANG));
    return await fail();
  }
}

/** A process. */
class Engine {
  readonly row: VersionRow = { key: VERSION, version: "" };
  readonly transactions: Transactions;
  /** The newest version of each row that was returned, by name. */
  readonly known: Map<string, KnownRow> = new Map();

  constructor(backend: Backend) {
    this.transactions = new Transactions(new Store(backend), { clock: () => 0 });
  }

  /** Reads and writes a row of its own. */
  async use(): Promise<void> {
    const key = ["use", crypto.randomUUID()];
    await this.transactions.run({
      reads: [key],
      decide: (_rows, write) => write.set(key, encodeJson(0)),
    });
  }

  remember(row: KnownRow): void {
    const name = nameOf(row.key);
    if ((this.known.get(name)?.entry?.versionstamp ?? "") <= (row.entry?.versionstamp ?? "")) {
      this.known.set(name, row);
    }
  }
}

/** The result of a plan in a state. */
function decideOn(plan: Plan, before: State): { found: string; isRefused: boolean; after: State } {
  const after = new Map(before);
  const rows: Rows = {
    get(key) {
      const number = before.get(nameOf(key));
      if (number === undefined) return null;
      return { key, value: encodeJson(number), versionstamp: "" };
    },
  };
  const write: Write = {
    set: (key, value) => {
      if (key[0] !== "log") after.set(nameOf(key), numberIn({ key, value, versionstamp: "" }));
    },
    delete: (key) => void after.delete(nameOf(key)),
    bump() {},
  };
  try {
    return { found: decide(plan, rows, write), isRefused: false, after };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { found: error.message, isRefused: true, after };
  }
}

/** Runs random histories, and checks them. */
export async function referee(openServer?: OpenServer): Promise<void> {
  const { random } = Math;
  const answers = new Map<string, number>();
  for (let seed = FIRST; seed < FIRST + HISTORIES; seed++) {
    using time = new VirtualTime();
    const referee = new Referee(seed, time, openServer);
    Math.random = seededRandom(seed);
    try {
      await referee.run(TRANSACTIONS);
      referee.check();
    } catch (error) {
      throw new Error(`Seed ${seed}`, { cause: error });
    } finally {
      Math.random = random;
    }
    for (const { answer, committed } of referee.calls) {
      const name = committed ? "committed" : answer;
      answers.set(name, (answers.get(name) ?? 0) + 1);
    }
  }

  for (const answer of ["committed", "result", "refused", "out of time", "unavailable"]) {
    assertGreater(answers.get(answer) ?? 0, 0, answer);
  }
}
