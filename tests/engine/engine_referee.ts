import { assert, assertEquals, assertGreater } from "@std/assert";
import type { Backend, BackendOptions } from "../../src/engine/backend.ts";
import { StoreUnavailable } from "../../src/engine/deadline.ts";
import { pause } from "../../src/base/time.ts";
import { FileBackend } from "../../src/engine/file.ts";
import { Ids } from "../../src/engine/ids.ts";
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
import { numberIn } from "./process.ts";

/** A random transaction. Its effects depend only on this plan and its rows. */
interface Plan {
  readonly id: number;
  /** Numbers of the rows that it decides on. */
  readonly reads: readonly number[];
  /** Number of further rows that it decides on, each of which depends on the numbers in the rows before it. */
  readonly follows: number;
  /** Number of a row that it decides on, and that others create without reading it. */
  readonly awaits: number | undefined;
  /** Number of a row that it creates without reading it. */
  readonly creates: number | undefined;
  readonly bumps: boolean;
  /** The feeds that it appends to while the feature is on. */
  readonly feeds: readonly string[];
  /** Whether it draws an id, and creates a row for it. */
  readonly draws: boolean;
  /** Added to the sum of its rows; the total modulo 8 decides whether it throws, writes nothing or deletes a row. */
  readonly salt: number;
  /** The value of its row in the log, which tells its commit. */
  readonly mark: Uint8Array<ArrayBuffer>;
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

/** A process. */
interface Engine {
  readonly row: VersionRow;
  readonly transactions: Transactions;
  readonly ids: Ids;
  /** The newest version of each row that was returned, by name. */
  readonly known: Map<string, KnownRow>;
}

/** The network between one handle and KV. It loses, repeats and delays messages. */
interface Line extends Network {
  /** Whether every operation hangs, because the connection is dead, or fails, because it received wrong metadata. */
  condition: "well" | "dead" | "nonsense";
}

/** What happens to an operation. */
type Fate = "well" | typeof ON_SERVER[number] | typeof ON_FILE[number];

const ON_SERVER = [
  ...["hangs", "fails", "fails when done", "gets no reply", "lands late"] as const,
  ...["repeated", "repeated", "repeated"] as const,
];
/** A file loses no replies, and whatever hangs on it ends at some time. */
const ON_FILE = ["hangs", "fails", "locked", "locked", "lands late"] as const;

/** The rows of the feeds: their versionstamps by the names of their keys, and the ids in them. */
type Appended = Map<string, readonly [versionstamp: string, ids: number[]]>;

/** The rows at one moment: their numbers by name. */
type State = ReadonlyMap<string, number>;

/** The message is what the plan found. */
class Refused extends Error {}

class OutOfTime extends Error {}

/** How calls are rejected. The first that applies counts. */
const REJECTIONS = [
  ["refused", Refused],
  ["out of time", OutOfTime],
  ["unresolved", Unresolved],
  ["unavailable", StoreUnavailable],
] as const;

/** Number of random histories, each from its own seed. */
const HISTORIES = Number(Deno.env.get("HISTORIES") ?? 40);
const FIRST = Number(Deno.env.get("FIRST_SEED") ?? 1);
const TRANSACTIONS = 150;
const ROWS = 6;
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
const drawnKey = (drawn: number): Deno.KvKey => ["drawn", drawn];
const logKey = (id: number): Deno.KvKey => ["log", id];
/** While it is on, plans append to their feeds. */
const FEATURE = "feeds";
const FEEDS = ["news", "letters"];
const nameOf = (key: Deno.KvKey): string => JSON.stringify(key);

/** Decides as planned. */
function decide(
  { id, mark, salt, ...plan }: Plan,
  rows: Rows,
  write: Write,
  { row: version, ids }: Partial<Pick<Engine, "row" | "ids">> = {},
): string {
  const found = new Map<string, number>();
  let sum = salt;
  const find = (key: Deno.KvKey) => {
    const number = numberIn(rows.get(key));
    found.set(nameOf(key), number);
    sum += number + 1;
  };
  keysOf(plan).forEach(find);
  const reads = new Set(plan.reads);
  for (let count = 0; count < plan.follows; count++) {
    const row = sum % ROWS;
    reads.add(row);
    find(rowKey(row));
  }
  const finding = `${id}: ${JSON.stringify([...found])}`;
  const remainder = found.size > 0 ? sum % 8 : 7;
  if (remainder === 2 || remainder === 3) return finding;
  write.set(logKey(id), mark);
  if (plan.draws && ids) write.set(drawnKey(write.draw(ids)), encodeJson(id));
  if (plan.creates !== undefined) write.set(newKey(plan.creates), encodeJson(id));
  [...reads].toReversed().forEach((row, index) => {
    if (index === 0 && remainder === 4) write.delete(rowKey(row));
    else if (index < 2) write.set(rowKey(row), encodeJson((sum * 7 + id) % 1_000));
  });
  if (plan.bumps && version) write.bump(version);
  if (rows.features[FEATURE]) { for (const feed of plan.feeds) write.append([feed], { id }); }
  if (remainder < 2) throw new Refused(finding); // Its changes are discarded.
  return finding;
}

/** Keys of the rows that a plan decides on, whatever they contain. */
function keysOf({ reads, awaits }: Pick<Plan, "reads" | "awaits">): Deno.KvKey[] {
  return [...reads.map(rowKey), ...(awaits === undefined ? [] : [newKey(awaits)])];
}

/** Names of the rows in a finding. */
function rowsIn(finding: string): string[] {
  const found: [string, number][] = JSON.parse(finding.slice(finding.indexOf(" ")));
  return found.map(([name]) => name);
}

/** What a plan finds in a state, and the state that it leaves; undefined if it is refused. */
function decideOn(plan: Plan, before: State): { finding: string; after?: State } {
  const after = new Map(before);
  const rows: Rows = {
    features: {},
    now: 0,
    get(key) {
      const number = before.get(nameOf(key));
      return number === undefined ? null : { key, value: encodeJson(number), versionstamp: "" };
    },
  };
  const write: Write = {
    set(key, value) {
      if (key[0] !== "log") after.set(nameOf(key), numberIn({ key, value, versionstamp: "" }));
    },
    delete: (key) => void after.delete(nameOf(key)),
    bump() {},
    append() {},
    draw: () => 0,
  };
  try {
    return { finding: decide(plan, rows, write), after };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { finding: error.message };
  }
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
  /** Plans, and what foreign processes write, by the number of their row in the log. */
  readonly #plans: Map<number, Plan | [name: string, number: number]> = new Map();
  /** Whether the feature is on, and the commits of foreign processes that switched it, by their row in the log. */
  #isOn = false;
  readonly #switches: Map<number, boolean> = new Map();
  readonly #faults: string[] = [];
  /** Lines to a server. */
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
      const isServer = openServer !== undefined && this.#below(4) > 0;
      const open = () => Array.from({ length: HANDLES }, () => this.#kv.connect(this.#line(isServer)));
      const [kv, reader] = isServer ? [] : open();
      const backend = kv ? new FileBackend(kv, { ...options, reader }) : openServer?.(open, options);
      assert(backend);
      // As many as for the farthest server.
      if (isServer && this.#below(3) === 0) Object.defineProperty(backend, "lanes", { value: 12 });
      const transactions = new Transactions(new Store(backend), () => 0);
      const ids = new Ids(transactions, ["ids"]);
      return { row: { key: ["version"], version: "" }, transactions, ids, known: new Map() };
    });
  }

  /** Runs `count` transactions, a few at a time, until all have ended. Then every engine must work again. */
  async run(count: number): Promise<void> {
    while (this.#id < count) {
      for (let some = this.#below(12); some > 0; some--) this.#call();
      await this.#meddle();
      await this.#time.advance(this.#below(30));
    }
    this.#isFaulty = false;
    await this.#time.advance(RECOVERY);
    assertEquals(this.calls.filter(({ answer }) => answer === "none"), []);
    this.#breakHandle();
    const uses = () =>
      this.#engines.flatMap((engine) => Array.from({ length: 4 * HANDLES }, () => use(engine)));
    for (let count = 0; count < 10; count++) {
      await this.#time.until(Promise.allSettled(uses()), RECOVERY);
      await this.#time.advance(KV_PATIENCE);
    }
    await this.#time.advance(RECOVERY);
    await this.#time.until(Promise.all(uses()), KV_PATIENCE);
  }

  #below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  #plan(): Plan {
    const isBlind = this.#below(3) === 0;
    const reads = Array.from({ length: isBlind ? 0 : 1 + this.#below(3) }, () => this.#below(ROWS));
    return {
      id: ++this.#id,
      reads: [...new Set(reads)],
      follows: isBlind || this.#below(2) === 0 ? 0 : 1 + this.#below(4),
      awaits: isBlind || this.#below(3) === 0 ? undefined : this.#created + this.#below(2),
      creates: isBlind || this.#below(8) === 0 ? this.#created++ : undefined,
      bumps: this.#below(12) === 0,
      feeds: FEEDS.filter(() => this.#below(3) === 0),
      draws: this.#below(3) === 0,
      salt: this.#below(8),
      mark: encodeJson(0),
    };
  }

  #call(): void {
    const engine = this.#engines[this.#below(ENGINES)];
    assert(engine);
    const plan = this.#plan();
    this.#plans.set(plan.id, plan);
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
    const end = (outcome: Partial<Call>) =>
      Object.assign(call, outcome, { answered: this.#kv.repetitions.length });
    const mayBegin = () => {
      if (this.#time.now > call.deadline) throw new OutOfTime();
    };
    const given = [keysOf(plan), [], [rowKey(this.#below(ROWS))]][this.#below(3)] ?? [];
    const transaction: Transaction<string> = {
      reads: given.map((key) => this.#below(4) === 0 ? engine.known.get(nameOf(key)) ?? key : key),
      decide: (rows, write) => decide(plan, rows, write, engine),
    };
    engine.transactions.run(transaction, mayBegin).then(({ result: finding, committed, rows }) => {
      end({ answer: "result", finding, committed, rows });
      const names = new Set(rows.map(({ key }) => nameOf(key)));
      const had = new Set([...given.map(nameOf), ...rowsIn(finding)]);
      if (names.symmetricDifference(had).size > 0) {
        this.#faults.push(`${plan.id} returned ${[...names]} instead of ${[...had]}`);
      }
      for (const row of rows) remember(engine, row);
      const { versionstamp = "" } = this.#kv.rows.get(nameOf(logKey(plan.id))) ?? {};
      if (plan.bumps && committed && engine.row.version < versionstamp) {
        this.#faults.push(`${plan.id} returned before its new version was noted`);
      }
    }, (error) => {
      const [answer] = REJECTIONS.find(([, kind]) => error instanceof kind) ?? [];
      if (answer === undefined) throw error;
      end({ answer, finding: error.message });
    });
  }

  /** Does, now and then, what other processes and the network do. */
  async #meddle(): Promise<void> {
    const operation = this.#kv.connect().atomic();
    if (this.#below(3) === 0) {
      // A foreign process writes a row without reading it.
      const id = ++this.#id;
      const [row, value] = [this.#below(ROWS), this.#below(1_000)];
      this.#plans.set(id, [nameOf(rowKey(row)), value]);
      operation.set(rowKey(row), encodeJson(value)).set(logKey(id), encodeJson(0));
    }
    if (this.#below(40) === 0) {
      // A process whose clock is days ahead removes every marker.
      for (const { key } of this.#kv.rows.values()) if (key[0] === "commits") operation.delete(key);
    }
    // A process switches the feature, or writes the row of the schema version unchanged.
    if (this.#below(20) === 0) {
      if (this.#below(2) === 0) {
        const id = ++this.#id;
        this.#isOn = !this.#isOn;
        this.#switches.set(id, this.#isOn);
        operation.set(logKey(id), encodeJson(0));
      }
      operation.set(
        SCHEMA,
        encodeJson(this.#isOn ? { version: 3, features: { [FEATURE]: 1 } } : { version: 1 }),
      );
    }
    await operation.commit();
    // A connection breaks.
    if (this.#below(this.#rarity) === 0) this.#breakHandle();
  }

  /** Breaks one of the handles on a server that were opened last, for good. */
  #breakHandle(): void {
    const line = this.#lines.at(-1 - this.#below(HANDLES));
    if (line) line.condition = this.#below(2) === 0 ? "dead" : "nonsense";
  }

  /** Draws the fate of an operation that starts now. */
  #fate(isServer: boolean): Fate {
    const fates = isServer ? ON_SERVER : ON_FILE;
    return this.#isFaulty && this.#below(this.#rarity) === 0
      ? fates[this.#below(fates.length)] ?? "well"
      : "well";
  }

  #line(isServer: boolean): Line {
    const stall = async () => {
      if (isServer) await hang();
      await pause(this.#below(HANG));
      await fail();
    };
    const pass = async (fate: Fate) => {
      if (line.condition === "nonsense" || fate === "fails") await fail();
      await pause(this.#below(15));
      if (line.condition === "dead" || fate === "hangs") await stall();
      if (fate === "locked") await locked();
    };
    const line: Line = {
      condition: "well",
      read: () => pass(this.#fate(isServer)),
      commit: async (applyOnce, values) => {
        for (const { plan, deadline } of this.calls) {
          const isLate = this.#time.now > deadline && values.includes(plan.mark);
          if (isLate) this.#faults.push(`${plan.id} was sent to KV too late`);
        }
        const apply = () => {
          const result = applyOnce();
          if (result.ok && isServer) this.#repetitions.push(applyOnce);
          return result;
        };
        const fate = this.#fate(isServer);
        if (fate === "lands late" || (line.condition === "dead" && this.#below(2) === 0)) {
          await pause(this.#below(2 * KV_PATIENCE));
          const result = apply();
          return isServer ? await hang() : result;
        }
        await pass(fate);
        const result = apply();
        if (fate === "fails when done") await fail();
        if (fate === "gets no reply") await stall();
        await pause(this.#below(15));
        return fate === "repeated" ? apply() : result; // A repetition that no process notices.
      },
    };
    if (isServer) this.#lines.push(line);
    return line;
  }

  /** Replays all commits, and compares every answer with the expected one. */
  check(): void {
    assertEquals(this.#faults, []);
    const { states, applied, appended } = this.#replay();
    assertEquals(this.#appended(), appended);
    for (const { plan, answer, committed, began, answered, finding, rows } of this.calls) {
      const at = applied.get(plan.id);
      const what = `${plan.id} (${answer}): ${finding}`;
      if (committed) {
        assert(at !== undefined && at.commit <= answered, `It was told before it applied: ${what}`);
        assertEquals(finding, at.finding, what);
      } else if (answer !== "unresolved") assertEquals(at, undefined, `It applied: ${what}`);
      if (!committed && (answer === "result" || answer === "refused")) {
        const meanwhile = states.slice(began, answered + 1).flat();
        assert(
          meanwhile.some((state) => decideOn(plan, state).finding === finding),
          `It was never so: ${what}`,
        );
      }
      // Each row that a call returned has the content of its version.
      for (const { key, entry } of rows) {
        const state = states[Number(entry?.versionstamp)]?.at(-1);
        if (entry) assertEquals(numberIn(entry), state?.get(nameOf(key)), `A row shown to ${what}: ${key}`);
      }
    }
    // Each id was drawn once.
    const drawing = this.calls.filter(({ plan }) => plan.draws && applied.has(plan.id)).map(({ plan }) =>
      plan.id
    );
    const drawn = [...this.#kv.rows.values()].filter(({ key: [table] }) => table === "drawn");
    assertEquals(new Set(drawn.map((row) => numberIn(row))), new Set(drawing));
    // The first commit in a lane sets only its marker, which might have been removed.
    const rows = () => [...this.#kv.rows.values()].filter(({ key: [table] }) => table !== "commits");
    const before = rows();
    const last = before.filter(({ key: [table] }) => table === "row" || table === "new");
    assertEquals(new Map(last.map((row) => [nameOf(row.key), numberIn(row)])), states.at(-1)?.at(-1));
    for (const repeat of this.#repetitions) repeat();
    assertEquals(rows(), before);
  }

  #appended(): Appended {
    const rows = [...this.#kv.rows.values()].filter(({ key: [table] }) => FEEDS.includes(String(table)));
    const ids = (row: Entry) => decodeJson<{ id: number }[]>(row).map(({ id }) => id);
    return new Map(rows.map((row) => [nameOf(row.key), [row.versionstamp, ids(row)]]));
  }

  /**
   * The states after each commit, one per transaction in it, the commit in which each transaction applied, and what all
   * of them appended.
   */
  #replay(): {
    states: State[][];
    applied: Map<number, { commit: number; finding: string }>;
    appended: Appended;
  } {
    const appended: Appended = new Map();
    let isOn = false;
    const applied = new Map<number, { commit: number; finding: string }>();
    const log = [...this.#kv.rows.values()].filter(({ key }) => key[0] === "log");
    const byCommit = Map.groupBy(log, ({ versionstamp }) => Number(versionstamp));
    let state: State = new Map();
    const states = [[state]];
    for (let commit = 1; commit <= this.#kv.repetitions.length; commit++) {
      const within = (byCommit.get(commit) ?? []).map(({ key: [, id], versionstamp }) => {
        isOn = this.#switches.get(Number(id)) ?? isOn;
        if (this.#switches.has(Number(id))) return state;
        const plan = this.#plans.get(Number(id));
        assert(plan);
        if (Array.isArray(plan)) return state = new Map([...state, plan]);
        const { finding, after } = decideOn(plan, state);
        assert(after, `It applied although it should have been refused: ${finding}`);
        applied.set(plan.id, { commit, finding });
        for (const feed of isOn ? plan.feeds : []) {
          const name = nameOf([feed, versionstamp]);
          const [, ids] = appended.get(name) ?? [versionstamp, []];
          appended.set(name, [versionstamp, [...ids, plan.id]]);
        }
        return state = after;
      });
      states.push(within.length > 0 ? within : [state]);
    }
    return { states, applied, appended };
  }
}

/** Reads and writes a row of its own. */
async function use({ transactions }: Engine): Promise<void> {
  const key = ["use", crypto.randomUUID()];
  await transactions.run({ reads: [key], decide: (_rows, write) => write.set(key, encodeJson(0)) });
}

/** Keeps the newest version of a row that was returned. */
function remember({ known }: Engine, row: KnownRow): void {
  const name = nameOf(row.key);
  const before = known.get(name)?.entry?.versionstamp ?? "";
  if (before <= (row.entry?.versionstamp ?? "")) known.set(name, row);
}

/** Runs random histories, and checks them. */
export async function referee(openServer?: OpenServer): Promise<void> {
  const { random } = Math;
  const answers = new Map<string, number>();
  for (let seed = FIRST; seed < FIRST + HISTORIES; seed++) {
    await using time = new VirtualTime();
    const referee = new Referee(seed, time, openServer);
    Math.random = seededRandom(seed);
    try {
      await referee.run(TRANSACTIONS);
      referee.check();
    } catch (error) {
      throw new Error(`Seed ${seed}`, { cause: error });
    } finally {
      time.clear();
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
