import { assert, assertEquals } from "@std/assert";
import { Connection } from "../../../src/kv/connection.ts";
import { pause, StoreUnavailable } from "../../../src/kv/deadline.ts";
import { decodeCount, decodeJson, encodeJson, type Entry } from "../../../src/kv/row.ts";
import { Store } from "../../../src/kv/store.ts";
import {
  type KnownRow,
  type Queue,
  type Rows,
  type Transaction,
  Unresolved,
  type Write,
} from "../../../src/store/transaction.ts";
import { Transactions } from "../../../src/store/transactions.ts";
import { Outdated, VersionCheck, type VersionRow } from "../../../src/store/versions.ts";
import { type CommitResult, FakeKv } from "../../support/fake_kv.ts";
import { seededRandom, type VirtualTime } from "../../support/time.ts";

/** A random transaction. Its effects depend only on this plan and its rows. */
interface Plan {
  readonly id: number;
  /** Numbers of the rows that it decides on. */
  readonly reads: readonly number[];
  /** Number of a count that it peeks at and adds to. */
  readonly count: number | undefined;
  readonly adds: number;
  /** Number of a row that it decides on, and that others create without reading it. */
  readonly awaits: number | undefined;
  /** Number of a row that it creates without reading it. */
  readonly creates: number | undefined;
  readonly bumps: boolean;
  /** Added to the sum of its rows; the total modulo 8 decides whether it throws, writes nothing or deletes a row. */
  readonly salt: number;
}

/** The result of a plan on some rows. */
interface Finding {
  readonly text: string;
  readonly peeked: number;
}

/** A run of a plan, and its outcome. */
interface Call {
  readonly plan: Plan;
  readonly assumed: string | undefined;
  /** Number of commits that had applied when it began, and when it was answered. */
  readonly began: number;
  answered: number;
  readonly deadline: number;
  answer: "none" | "result" | "refused" | "out of time" | "outdated" | "unresolved" | "unavailable";
  finding: Finding | undefined;
  committed: boolean;
  rows: readonly KnownRow[];
}

/** The rows at one moment: their numbers by name. */
interface State {
  readonly values: ReadonlyMap<string, number>;
  /** Version of the version row. */
  readonly version: string;
}

class Refused extends Error {
  readonly finding: Finding;
  constructor(finding: Finding) {
    super(finding.text);
    this.finding = finding;
  }
}

class OutOfTime extends Error {}

const ROWS = 6;
const VERSION = ["version"];
const QUEUES: readonly Queue[] = [{ label: "changes", lanes: () => 12 }, {
  label: "changes",
  lanes: () => 3,
}];
const ENGINES = 3;
const PATIENCE = 300;
const KV_PATIENCE = 200;

const rowKey = (row: number): Deno.KvKey => ["row", row];
const countKey = (count: number): Deno.KvKey => ["count", count];
const newKey = (created: number): Deno.KvKey => ["new", created];
const logKey = (id: number): Deno.KvKey => ["log", id];
const nameOf = (key: Deno.KvKey): string => JSON.stringify(key);

/** Decides as planned. */
function decide(plan: Plan, rows: Rows, write: Write): Finding {
  const numbers = plan.reads.map((row) => numberIn(rows.get(rowKey(row))));
  if (plan.awaits !== undefined) numbers.push(numberIn(rows.get(newKey(plan.awaits))));
  const peeked = plan.count === undefined ? -1 : decodeCount(rows.get(countKey(plan.count)));
  const sum = numbers.reduce((total, number) => total + number + 1, 0);
  const finding = { text: `${plan.id}: ${numbers}`, peeked };
  const remainder = (sum + plan.salt) % 8;
  if (numbers.length > 0 && remainder < 2) throw new Refused(finding);
  if (numbers.length > 0 && remainder < 4) return finding;
  write.set(logKey(plan.id), encodeJson(0));
  if (plan.creates !== undefined) write.set(newKey(plan.creates), encodeJson(plan.id));
  plan.reads.forEach((row, index) => {
    if (index === 0 && remainder === 4) write.delete(rowKey(row));
    else if (index < 2) write.set(rowKey(row), encodeJson((sum * 7 + plan.id) % 1_000));
  });
  if (plan.count !== undefined) write.add(countKey(plan.count), plan.adds);
  if (plan.bumps) write.bump(ROW);
  return finding;
}

/** The version row of the process whose plan is running. */
let ROW: VersionRow = { key: VERSION, version: "" };

function numberIn(entry: Entry | null): number {
  return entry ? decodeJson<number>(entry) : -1;
}

/** Three engines on one KV, random calls to them, and random faults of their networks. */
export class Referee {
  readonly calls: Call[] = [];
  readonly #kv: FakeKv = new FakeKv();
  readonly #random: () => number;
  readonly #time: VirtualTime;
  readonly #engines: readonly Engine[];
  /** Writes of foreign processes, by the number of their row in the log. */
  readonly #foreign: Map<number, readonly [row: number, value: number]> = new Map();
  readonly #faults: string[] = [];
  #id = 0;
  #created = 0;

  constructor(seed: number, time: VirtualTime) {
    this.#random = seededRandom(seed);
    this.#time = time;
    this.#engines = Array.from({ length: ENGINES }, () => new Engine(this.#connect(), this.#below(2) === 0));
  }

  /** Runs `count` transactions, a few at a time, until all have ended. */
  async run(count: number): Promise<void> {
    while (this.#id < count) {
      for (let some = this.#below(12); some > 0; some--) this.#call();
      if (this.#below(3) === 0) await this.#meddle();
      await this.#time.advance(this.#below(30));
    }
    await this.#time.advance(60_000);
    assertEquals(this.calls.filter(({ answer }) => answer === "none"), []);
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
      count: !isBlind && this.#below(3) === 0 ? this.#below(2) : undefined,
      adds: 1 + this.#below(3),
      awaits: isBlind || this.#below(3) === 0 ? undefined : this.#created + this.#below(2),
      creates: isBlind || this.#below(8) === 0 ? this.#created++ : undefined,
      bumps: this.#below(12) === 0,
      salt: this.#below(8),
    };
  }

  #call(): void {
    const engine = this.#engines[this.#below(ENGINES)] ?? new Engine(this.#connect(), true);
    const plan = this.#plan();
    const assumes = this.#below(3) === 0 ? new VersionCheck(engine.row) : undefined;
    const call: Call = {
      plan,
      assumed: assumes && (assumes.versionstamp ?? ""),
      began: this.#kv.repetitions.length,
      answered: Infinity,
      deadline: this.#time.now + 20 + this.#below(PATIENCE),
      answer: "none",
      finding: undefined,
      committed: false,
      rows: [],
    };
    this.calls.push(call);
    const mayBegin = () => {
      if (this.#time.now > call.deadline) throw new OutOfTime();
    };
    const transaction: Transaction<Finding> = {
      queue: QUEUES[this.#below(QUEUES.length)] ?? { label: "changes", lanes: () => 1 },
      reads: [...plan.reads.map(rowKey), ...(plan.awaits === undefined ? [] : [newKey(plan.awaits)])]
        .map((key) => this.#below(4) === 0 ? engine.known.get(nameOf(key)) ?? key : key),
      peeks: plan.count === undefined ? [] : [countKey(plan.count)],
      decide(rows, write) {
        ROW = engine.row;
        return decide(plan, rows, write);
      },
    };
    engine.transactions.run(transaction, { assumes, mayBegin, isPatient: false }).then(
      ({ result, committed, rows }) => {
        this.#answer(call, "result", result, committed, rows);
        for (const row of rows) engine.remember(row);
        if (plan.bumps && committed) {
          const isNoted = engine.row.version >= this.#stampOf(logKey(plan.id));
          if (!isNoted) this.#faults.push(`${plan.id} returned before its new version was noted`);
        }
      },
      (error) => {
        if (error instanceof Refused) this.#answer(call, "refused", error.finding);
        else if (error instanceof OutOfTime) this.#answer(call, "out of time");
        else if (error instanceof Outdated) this.#answer(call, "outdated");
        else if (error instanceof Unresolved) this.#answer(call, "unresolved");
        else if (error instanceof StoreUnavailable) this.#answer(call, "unavailable");
        else throw error;
      },
    );
  }

  #answer(
    call: Call,
    answer: Call["answer"],
    finding?: Finding,
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
    await this.#kv.connect().atomic().set(rowKey(row), encodeJson(value))
      .set(logKey(id), encodeJson(0)).commit();
  }

  /** Returns a handle over a network that loses, repeats and delays messages. */
  #connect(): Deno.Kv {
    const delay = () => pause(this.#below(15));
    const kv = this.#kv.connect({
      read: async () => {
        await delay();
        if (this.#below(200) === 0) throw new Error("The read failed");
      },
      commit: async (apply) => {
        await delay();
        const fate = this.#below(60);
        if (fate === 0) throw new Error("The commit was lost");
        if (fate === 1) return await this.#lost(apply);
        if (fate === 2) return await this.#late(apply);
        const first = apply();
        const result = fate < 6 ? apply() : first; // A repetition that no process notices.
        await delay();
        return result;
      },
    });
    return this.#watched(kv);
  }

  #lost(apply: () => CommitResult): Promise<never> {
    apply();
    return new Promise(() => {});
  }

  async #late(apply: () => CommitResult): Promise<never> {
    await pause(this.#below(2 * KV_PATIENCE));
    apply();
    return await new Promise(() => {});
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
        assertEquals(call.finding?.text, at.finding.text, `Result of ${plan.id}`);
        this.#checkPeek(call, states);
        if (call.assumed !== undefined) assertEquals(at.version, call.assumed, `Assumption of ${plan.id}`);
      } else if (answer === "result" || answer === "refused") {
        assertEquals(at, undefined, `${plan.id} was reported as unchanged, but is committed`);
        assert(
          this.#isTrueSometime(call, states, began, answered),
          `Outcome of ${plan.id}: ${call.finding?.text}`,
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
      new Map([...(last?.values ?? [])].filter(([name]) => !name.startsWith('["count"'))),
    );
    for (const count of [0, 1]) {
      const row = this.#kv.rows.get(nameOf(countKey(count)));
      assertEquals(decodeCount(row ?? null), last?.values.get(nameOf(countKey(count))) ?? 0);
    }
  }

  /** Checks that each row that a call returned has the content of its version. */
  #checkRows({ plan, rows }: Call, states: readonly (readonly State[])[]): void {
    for (const { key, entry } of rows) {
      if (entry === null) continue;
      const state = states[Number(entry.versionstamp)]?.at(-1);
      assertEquals(numberIn(entry), state?.values.get(nameOf(key)), `A row shown to ${plan.id}: ${key}`);
    }
  }

  /** Checks a peeked row. It may be older than the rows that were decided on, but not older than the call. */
  #checkPeek({ plan, finding, began, answered }: Call, states: readonly (readonly State[])[]): void {
    if (plan.count === undefined || finding === undefined) return;
    const name = nameOf(countKey(plan.count));
    const [least, most] = [states[began], states[Math.min(answered, states.length - 1)]]
      .map((some) => some?.at(-1)?.values.get(name) ?? 0);
    const isPossible = finding.peeked >= (least ?? 0) && finding.peeked <= (most ?? 0);
    assert(isPossible, `${plan.id} peeked at ${finding.peeked}, not ${least} to ${most}`);
  }

  #isTrueSometime(
    { plan, finding, assumed }: Call,
    states: readonly (readonly State[])[],
    began: number,
    answered: number,
  ): boolean {
    return states.slice(began, answered + 1).flat().some((state) => {
      if (assumed !== undefined && state.version !== assumed) return false;
      return decideOn(plan, state).found.text === finding?.text;
    });
  }

  /** The states after each commit, one per transaction in it, and the commit in which each transaction applied. */
  #replay(): {
    states: State[][];
    applied: Map<number, { commit: number; finding: Finding; version: string }>;
  } {
    const applied = new Map<number, { commit: number; finding: Finding; version: string }>();
    const log = [...this.#kv.rows.values()].filter(({ key }) => key[0] === "log");
    const byCommit = Map.groupBy(log, ({ versionstamp }) => Number(versionstamp));
    const plans = new Map(this.calls.map(({ plan }) => [plan.id, plan]));
    let state: State = { values: new Map(), version: "" };
    const states = [[state]];
    for (let commit = 1; commit <= this.#kv.repetitions.length; commit++) {
      const within: State[] = [];
      for (const { key } of byCommit.get(commit) ?? []) {
        const id = Number(key[1]);
        const [row, value] = this.#foreign.get(id) ?? [];
        if (row !== undefined && value !== undefined) {
          state = { ...state, values: new Map([...state.values, [nameOf(rowKey(row)), value]]) };
        } else {
          const plan = plans.get(id);
          assert(plan !== undefined);
          const { found, after, isRefused } = decideOn(plan, state);
          assert(!isRefused, `${id} committed although it should have refused: ${found.text}`);
          applied.set(id, { commit, finding: found, version: state.version });
          state = after(`${commit}`.padStart(20, "0"));
        }
        within.push(state);
      }
      states.push(within.length > 0 ? within : [state]);
    }
    return { states, applied };
  }
}

/** A process. */
class Engine {
  readonly row: VersionRow = { key: VERSION, version: "" };
  readonly transactions: Transactions;
  /** The newest version of each row that was returned, by name. */
  readonly known: Map<string, KnownRow> = new Map();

  constructor(kv: Deno.Kv, isFar: boolean) {
    const connection = new Connection([kv], { deadline: KV_PATIENCE });
    const store = new Store(connection, { maxChecks: isFar ? 10 : 100, clock: () => 0 });
    this.transactions = new Transactions(store, () => 0);
  }

  remember(row: KnownRow): void {
    const name = nameOf(row.key);
    if ((this.known.get(name)?.entry?.versionstamp ?? "") <= (row.entry?.versionstamp ?? "")) {
      this.known.set(name, row);
    }
  }
}

/** The result of a plan in a state. */
function decideOn(
  plan: Plan,
  { values, version }: State,
): { found: Finding; isRefused: boolean; after: (versionstamp: string) => State } {
  const next = new Map(values);
  let isBumped = false;
  const rows: Rows = {
    get(key) {
      const number = values.get(nameOf(key));
      if (number === undefined) return null;
      const value = key[0] === "count" ? new Deno.KvU64(BigInt(number)) : encodeJson(number);
      return { key, value, versionstamp: "" };
    },
  };
  const write: Write = {
    set: (key, value) => {
      if (key[0] !== "log") next.set(nameOf(key), numberIn({ key, value, versionstamp: "" }));
    },
    delete: (key) => void next.delete(nameOf(key)),
    add: (key, count) => {
      const sum = BigInt(next.get(nameOf(key)) ?? 0) + BigInt(count);
      next.set(nameOf(key), Number(BigInt.asUintN(64, sum)));
    },
    bump: () => void (isBumped = true),
    id: () => 0,
  };
  const after = (versionstamp: string) => ({ values: next, version: isBumped ? versionstamp : version });
  try {
    return { found: decide(plan, rows, write), isRefused: false, after };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { found: error.finding, isRefused: true, after };
  }
}
