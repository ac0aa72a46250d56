import { batched, type Waiting } from "../kv/batcher.ts";
import { BoundedMap } from "../kv/bounded_map.ts";
import { retried } from "../kv/retry.ts";
import type { Entry, Store } from "../kv/store.ts";
import { type ApiKey, isValid, keyRow } from "./api_key.ts";
import { takeOrStrike, type Verdict } from "./usage.ts";

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

/** A key row after the claims on it were decided. */
interface Decision {
  readonly entry: Entry<ApiKey>;
  readonly key: ApiKey;
  readonly outcomes: readonly Outcome[];
}

const MAX_CACHED_KEYS = 10_000;
const MAX_TURNS = 8;

/**
 * Admits requests, exactly: a round takes the places of all who wait in one commit, which checks that
 * every row it decided from is still current. Cached rows make that the only access to KV.
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
  readonly #entries: BoundedMap<string, Entry<ApiKey>> = new BoundedMap(MAX_CACHED_KEYS);

  constructor(store: Store, clock: () => number) {
    this.#store = store;
    this.#clock = clock;
    this.admit = batched((round) => this.#round(round), { maxTurns: MAX_TURNS });
  }

  async #round(round: readonly Waiting<Claim, Outcome>[]): Promise<void> {
    const groups = [...Map.groupBy(round, ({ item }) => item.keyId)];
    const slices: Promise<void>[] = [];
    for (let start = 0; start < groups.length; start += this.#store.maxChecks) {
      const slice = groups.slice(start, start + this.#store.maxChecks)
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
    const entries = await this.#read(slice);
    const now = this.#clock();
    const decisions = slice.map(({ waiting }, index) => decide(entries[index] ?? null, waiting, now));
    if (!await this.#confirm(decisions.filter((decision) => decision !== undefined), slot)) {
      for (const { keyId } of slice) this.#entries.delete(keyId);
      return undefined;
    }
    slice.forEach(({ waiting }, index) => {
      const outcomes = decisions[index]?.outcomes ?? [];
      waiting.forEach(({ resolve }, place) => resolve(outcomes[place]));
    });
    return true;
  }

  /** The rows, from the cache where it has them. */
  async #read(slice: readonly Claims[]): Promise<(Entry<ApiKey> | null)[]> {
    const cached = slice.map(({ keyId }) => this.#entries.get(keyId));
    const missing = slice.filter((_, index) => cached[index] === undefined);
    const read = missing.length === 0
      ? []
      : await this.#store.getMany<ApiKey>(missing.map(({ keyId }) => keyRow(keyId)));
    return cached.map((entry) => entry ?? read.shift() ?? null);
  }

  /** Stores what was decided, provided that no row it was decided from has changed; false otherwise. */
  async #confirm(decisions: readonly Decision[], slot: string): Promise<boolean> {
    const changed = decisions.filter(({ entry, key }) => entry.value !== key);
    if (changed.length === 0) return await this.#areCurrent(decisions);
    const versionstamp = await this.#store.commit(slot, (operation) => {
      for (const { entry } of decisions) operation.check(entry);
      for (const { entry, key } of changed) operation.set(entry.key, key);
    });
    if (versionstamp === undefined) return false;
    for (const { entry: { key }, key: value } of changed) {
      this.#entries.set(value.id, { key, value, versionstamp });
    }
    return true;
  }

  async #areCurrent(decisions: readonly Decision[]): Promise<boolean> {
    const current = await this.#store.getMany(decisions.map(({ entry }) => entry.key));
    if (decisions.some(({ entry }, index) => current[index]?.versionstamp !== entry.versionstamp)) {
      return false;
    }
    for (const { entry } of decisions) this.#entries.set(entry.value.id, entry);
    return true;
  }
}

function decide(
  entry: Entry<ApiKey> | null,
  waiting: readonly Waiting<Claim, Outcome>[],
  now: number,
): Decision | undefined {
  if (entry === null) return undefined;
  const { value } = entry;
  let { usage } = value;
  const outcomes = waiting.map(({ item }) => {
    if (!isValid(value, item.hash, now)) return undefined;
    const verdict = takeOrStrike(usage, value.limits, now);
    usage = verdict.usage;
    return verdict;
  });
  return { entry, key: usage === value.usage ? value : { ...value, usage }, outcomes };
}
