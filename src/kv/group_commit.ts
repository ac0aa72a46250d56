import { ROUND_SIZE } from "../metrics/metrics.ts";
import { batched, type Waiting } from "./batcher.ts";
import type { CommitResult } from "./commit.ts";
import { RoundTrip } from "./round_trip.ts";
import { type Entry, versionstampOf } from "./row.ts";
import type { Store } from "./store.ts";
import { Condition, Outdated, raise, touch, type Watched } from "./watched.ts";

/** A key and the value to store under it. */
export type Row = readonly [key: Deno.KvKey, value: Uint8Array<ArrayBuffer>];

/** What is to be changed, on condition that other rows still are as they were. */
export interface Change {
  readonly checks: readonly Deno.AtomicCheck[];
  readonly sets: readonly Row[];
  readonly deletes?: readonly Deno.KvKey[];
  /** Numbers that grow by one. */
  readonly increments?: readonly Deno.KvKey[];
}

/** Changes nothing, on no condition. */
export const NO_CHANGE: Change = { checks: [], sets: [] };

/** What else is to be changed along with an item that is made, as soon as the item is known. */
export type Along<Item> = (item: Item) => Change;

type WaitingChange = Waiting<Change, CommitResult>;

/** Commits at a time to a KV that is far away. */
const LANES = 3;
/** What one atomic operation takes of keys, values and mutations, with some room for what is not counted here. */
const MAX_KEY_BYTES = 75_000;
const MAX_VALUE_BYTES = 600_000;
const MAX_MUTATIONS = 900;

/**
 * Joins changes that wait into one commit, as databases do to share what it costs to make one durable. When one
 * is refused, it goes on without the changes whose checks failed: the others do not suffer for it.
 */
export class GroupCommit {
  /**
   * Carries out all of a change, or nothing of it.
   *
   * @throws {Outdated} where nothing was done because a Condition among its checks does not hold.
   * @throws {StoreUnavailable}
   */
  readonly commit: (change: Change) => Promise<CommitResult>;
  readonly #store: Store;
  readonly #watched: Watched | undefined;
  readonly #roundTrip: RoundTrip;

  /** Each commit also sets the row that is `watched`. */
  constructor(store: Store, watched?: Watched) {
    this.#store = store;
    this.#roundTrip = new RoundTrip(store);
    this.#watched = watched;
    this.commit = batched((round) => this.#commitRound(round), {
      gather: (count) => this.#roundTrip.gather(count),
      lanes: () => this.#roundTrip.isFar ? LANES : 1,
    });
  }

  async #commitRound(round: readonly WaitingChange[]): Promise<void> {
    let waiting = round;
    while (waiting.length > 0) {
      const { group, rest, changed } = firstGroup(waiting, this.#store.maxChecks);
      await this.#commitGroup(group);
      // Whoever checks a row that was changed before it, decided on what is no longer so.
      const stale = rest.filter(({ item }) => item.checks.some(({ key }) => changed.has(nameOf(key))));
      for (const { resolve } of stale) resolve({ ok: false, rows: [] });
      waiting = rest.filter((call) => !stale.includes(call));
    }
  }

  /** Tells each change what became of the commit that it was in, and of no other. */
  async #commitGroup(group: readonly WaitingChange[]): Promise<void> {
    ROUND_SIZE.observe(group.length, "changes");
    const checks = [...new Set(group.flatMap(({ item }) => item.checks))];
    const started = performance.now();
    let result: CommitResult;
    try {
      result = await this.#commitAll(group, checks);
      this.#roundTrip.measure(started);
    } catch (error) {
      for (const { reject } of group) reject(error);
      return;
    }
    checks.forEach((check, index) => {
      if (!(check instanceof Condition)) return;
      if (result.ok) check.seeHold(started);
      else check.seeRow(result.rows[index] ?? null);
    });
    if (!result.ok) return await this.#goOn(group, failedChecks(checks, result.rows), result);
    if (this.#watched) raise(this.#watched, result.versionstamp);
    for (const { resolve } of group) resolve(result);
  }

  /** Goes on with those whose checks have not failed, after a commit that was refused; with nobody, if none has. */
  async #goOn(
    group: readonly WaitingChange[],
    failed: readonly Deno.AtomicCheck[],
    refused: CommitResult,
  ): Promise<void> {
    const others: WaitingChange[] = [];
    for (const call of group) {
      const own = call.item.checks.filter((check) => failed.includes(check));
      if (own.some((check) => check instanceof Condition)) call.reject(new Outdated());
      else if (own.length > 0 || failed.length === 0) call.resolve(refused);
      else others.push(call);
    }
    if (others.length > 0) await this.#commitGroup(others);
  }

  #commitAll(group: readonly WaitingChange[], checks: readonly Deno.AtomicCheck[]): Promise<CommitResult> {
    return this.#store.commit((operation) => {
      operation.check(...checks);
      for (const { item } of group) {
        for (const [key, value] of item.sets) operation.set(key, value);
        for (const key of item.deletes ?? []) operation.delete(key);
        for (const key of item.increments ?? []) operation.sum(key, 1n);
      }
      if (this.#watched) touch(operation, this.#watched);
    }, checks.map(({ key }) => key));
  }
}

/** The checks for which a commit was refused, as their rows show. */
function failedChecks(
  checks: readonly Deno.AtomicCheck[],
  rows: readonly (Entry | null)[],
): Deno.AtomicCheck[] {
  return checks.filter(({ versionstamp }, index) => versionstampOf(rows[index] ?? null) !== versionstamp);
}

/** As many as fit into one atomic operation, which carries them out in their order. */
function firstGroup(
  waiting: readonly WaitingChange[],
  maxChecks: number,
): { group: WaitingChange[]; rest: WaitingChange[]; changed: ReadonlySet<string> } {
  const group: WaitingChange[] = [];
  const rest: WaitingChange[] = [];
  const checked = new Map<string, Deno.AtomicCheck>();
  const written = new Set<string>();
  const grown = new Set<string>();
  // Only rows that may be checked need names.
  const checkedRoots = new Set(waiting.flatMap(({ item: { checks } }) => checks.map(({ key }) => key[0])));
  const note = (key: Deno.KvKey, names: Set<string>) => checkedRoots.has(key[0]) && names.add(nameOf(key));
  let [keyBytes, valueBytes, mutations] = [0, 0, 0];
  for (const call of waiting) {
    const { checks, sets, deletes = [], increments = [] } = call.item;
    const reads = checks.map((check) => [nameOf(check.key), check] as const);
    const news = reads.filter(([row]) => !checked.has(row));
    const grows = new Set(increments.map(nameOf));
    const count = sets.length + deletes.length + increments.length;
    let [keySize, valueSize] = [0, 0];
    for (const [key, value] of sets) {
      keySize += sizeOf(key);
      valueSize += value.length;
    }
    for (const key of deletes) keySize += sizeOf(key);
    // Who checks a row has to see what those before made of it, unless all of them only count in it and carry the
    // very same check: which of them comes first makes no difference.
    const fits = group.length === 0 ||
      keyBytes + keySize <= MAX_KEY_BYTES && valueBytes + valueSize <= MAX_VALUE_BYTES &&
        mutations + count <= MAX_MUTATIONS &&
        checked.size + news.length <= maxChecks &&
        reads.every(([row, check]) =>
          !written.has(row) && (!grown.has(row) || grows.has(row)) && (checked.get(row) ?? check) === check
        );
    (fits ? group : rest).push(call);
    if (!fits) continue;
    keyBytes += keySize;
    valueBytes += valueSize;
    mutations += count;
    for (const [row, check] of news) checked.set(row, check);
    for (const [key] of sets) note(key, written);
    for (const key of deletes) note(key, written);
    for (const key of increments) note(key, grown);
  }
  return { group, rest, changed: written.union(grown) };
}

/** Tells keys apart, as long as none differ in the type of a part alone. */
function nameOf(key: Deno.KvKey): string {
  return key.join("\0");
}

/** Roughly, in bytes. */
function sizeOf(key: Deno.KvKey): number {
  return key.reduce<number>((size, part) => size + (typeof part === "string" ? part.length + 2 : 10), 0);
}
