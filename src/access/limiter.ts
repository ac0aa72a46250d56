import { batched, type Waiting } from "../kv/batcher.ts";
import { BoundedMap } from "../kv/bounded_map.ts";
import type { ConfirmedRow } from "../kv/confirmed_row.ts";
import { encodeJson } from "../kv/json_value.ts";
import { retried } from "../kv/retry.ts";
import type { Store } from "../kv/store.ts";
import { isValid } from "./api_key.ts";
import { type KeyRows, readKeyRows } from "./key_rows.ts";
import { takeOrStrike, type Usage, type Verdict } from "./usage.ts";

/** A key that a request claims to hold. */
export interface Claim {
  readonly keyId: string;
  /** Hash of the secret that was sent. */
  readonly hash: string;
}

/** Undefined when the claim is not, or no longer, valid. */
type Outcome = Verdict | undefined;

/** The claims of a round that are on one key. */
interface Claims {
  readonly keyId: string;
  readonly waiting: Waiting<Claim, Outcome>[];
}

/** A key's usage after the claims on it were decided. */
interface Decision {
  readonly rows: KeyRows;
  readonly usage: Usage;
  readonly outcomes: readonly Outcome[];
}

/** What a limiter stands on. */
export interface LimiterOptions {
  readonly store: Store;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** A row that admissions confirm on the side. */
  readonly confirmed: ConfirmedRow<unknown>;
}

const MAX_CACHED_KEYS = 10_000;

/**
 * Admits requests, exactly: a round takes the places of all who wait in one commit, which checks that
 * every key it decided on is still as it was. Cached rows make that the only access to KV.
 */
export class Limiter {
  /**
   * Decides on one request.
   *
   * @throws {StoreUnavailable}
   */
  readonly admit: (claim: Claim) => Promise<Outcome>;
  readonly #store: Store;
  readonly #clock: () => number;
  readonly #confirmed: ConfirmedRow<unknown>;
  readonly #rows: BoundedMap<string, KeyRows> = new BoundedMap(MAX_CACHED_KEYS);

  constructor({ store, clock, confirmed }: LimiterOptions) {
    this.#store = store;
    this.#clock = clock;
    this.#confirmed = confirmed;
    this.admit = batched((round) => this.#round(round), { patient: true });
  }

  async #round(round: readonly Waiting<Claim, Outcome>[]): Promise<void> {
    const groups = [...Map.groupBy(round, ({ item }) => item.keyId)];
    const slices: Promise<void>[] = [];
    // One check is left to the confirmed row.
    const size = this.#store.maxChecks - 1;
    for (let start = 0; start < groups.length; start += size) {
      const slice = groups.slice(start, start + size)
        .map(([keyId, waiting]) => ({ keyId, waiting }));
      slices.push(this.#settleSlice(slice, `admit/${start}`));
    }
    await Promise.all(slices);
  }

  /** A slice that fails leaves the others of its round alone. */
  async #settleSlice(slice: readonly Claims[], slot: string): Promise<void> {
    try {
      if (!await this.#admitSlice(slice, slot)) await this.#retrySlice(slice, slot);
    } catch (error) {
      for (const { reject } of slice.flatMap(({ waiting }) => waiting)) reject(error);
    }
  }

  /** One key's conflict refuses a whole commit: halves keep the others from being refused again with it. */
  async #retrySlice(slice: readonly Claims[], slot: string): Promise<void> {
    if (slice.length === 1) {
      await retried(() => this.#admitSlice(slice, slot));
    } else {
      const middle = Math.ceil(slice.length / 2);
      await Promise.all([
        this.#settleSlice(slice.slice(0, middle), `${slot}.0`),
        this.#settleSlice(slice.slice(middle), `${slot}.1`),
      ]);
    }
  }

  async #admitSlice(slice: readonly Claims[], slot: string): Promise<true | undefined> {
    const rows = await this.#read(slice);
    const now = this.#clock();
    const decisions = slice.map(({ waiting }, index) => decide(rows[index], waiting, now));
    if (!await this.#commit(decisions.filter((decision) => decision !== undefined), slot)) {
      for (const { keyId } of slice) this.#rows.delete(keyId);
      return undefined;
    }
    slice.forEach(({ waiting }, index) => {
      const outcomes = decisions[index]?.outcomes ?? [];
      waiting.forEach(({ resolve }, place) => resolve(outcomes[place]));
    });
    return true;
  }

  /** The keys, from the cache where it has them; undefined where there is none. */
  async #read(slice: readonly Claims[]): Promise<(KeyRows | undefined)[]> {
    const cached = slice.map(({ keyId }) => this.#rows.get(keyId));
    const missing = slice.filter((_, index) => cached[index] === undefined);
    if (missing.length === 0) return cached;
    const read = await readKeyRows(this.#store, missing.map(({ keyId }) => keyId));
    return cached.map((rows) => rows ?? read.shift());
  }

  /** Stores what was decided, provided that no key it was decided on has changed; false otherwise. */
  async #commit(decisions: readonly Decision[], slot: string): Promise<boolean> {
    const changed = decisions.filter(({ rows, usage }) => rows.usage.value !== usage);
    if (changed.length === 0) return await this.#areCurrent(decisions);
    const versionstamp = await this.#confirmed.commit(slot, (operation) => {
      for (const { rows } of decisions) operation.check(rows.usage);
      for (const { rows, usage } of changed) operation.set(rows.usage.key, encodeJson(usage));
    });
    if (versionstamp === undefined) return false;
    for (const { rows, usage: value } of changed) {
      this.#keep({ key: rows.key, usage: { key: rows.usage.key, value, versionstamp } });
    }
    return true;
  }

  async #areCurrent(decisions: readonly Decision[]): Promise<boolean> {
    const current = await this.#store.getMany(decisions.map(({ rows }) => rows.usage.key));
    const unchanged = decisions.every(({ rows }, index) =>
      current[index]?.versionstamp === rows.usage.versionstamp
    );
    if (unchanged) { for (const { rows } of decisions) this.#keep(rows); }
    return unchanged;
  }

  #keep(rows: KeyRows): void {
    this.#rows.set(rows.key.value.id, rows);
  }
}

function decide(
  rows: KeyRows | undefined,
  waiting: readonly Waiting<Claim, Outcome>[],
  now: number,
): Decision | undefined {
  if (rows === undefined) return undefined;
  const key = rows.key.value;
  let usage = rows.usage.value;
  let verdict: Verdict | undefined;
  const outcomes = waiting.map(({ item }) => {
    if (!isValid(key, item.hash, now)) return undefined;
    // A request during a ban changes nothing, so one verdict tells all.
    if (verdict?.refusal !== "ban") verdict = takeOrStrike(usage, key.limits, now);
    usage = verdict.usage;
    return verdict;
  });
  return { rows, usage, outcomes };
}
