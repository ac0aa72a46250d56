import { KV_DEADLINE, StoreUnavailable, withDeadline } from "./deadline.ts";
import { retried } from "./retry.ts";

/** A row as KV gave it, present for certain. */
export interface Entry<T> {
  readonly key: Deno.KvKey;
  readonly value: T;
  readonly versionstamp: string;
}

/** What differs between the KVs that a store can stand on. */
export interface StoreOptions {
  /** Checks that one commit may carry, at least 2. */
  readonly maxChecks: number;
  /** Longest wait for one operation, in ms. */
  readonly deadline?: number;
}

/** What KV takes; even, so that rows which belong together in pairs are of one moment. */
const MAX_KEYS_PER_READ = 10;
const MAX_BATCH = 500;
const MAX_HANGING = 16;

/**
 * Deno KV with a deadline on every operation, and with commits that tell the truth.
 *
 * @throws {StoreUnavailable} from every method, when KV fails or does not answer in time.
 */
export class Store implements Disposable {
  readonly maxChecks: number;
  readonly #kv: Deno.Kv;
  readonly #deadline: number;
  #instance: string = crypto.randomUUID();
  #sequence = 0;
  #hanging = 0;
  #nextTry = 0;

  constructor(kv: Deno.Kv, { maxChecks, deadline = KV_DEADLINE }: StoreOptions) {
    this.#kv = kv;
    this.maxChecks = maxChecks;
    this.#deadline = deadline;
  }

  /** One row, or null. */
  async get<T>(key: Deno.KvKey): Promise<Entry<T> | null> {
    return present(await this.#run(() => this.#kv.get<T>(key)));
  }

  /** Rows in the order of their keys, null where there is none. Not one snapshot beyond ten keys. */
  async getMany<T>(keys: readonly Deno.KvKey[]): Promise<(Entry<T> | null)[]> {
    const slices: Deno.KvKey[][] = [];
    for (let start = 0; start < keys.length; start += MAX_KEYS_PER_READ) {
      slices.push(keys.slice(start, start + MAX_KEYS_PER_READ));
    }
    const reads = await this.#run(() => Promise.all(slices.map((slice) => this.#kv.getMany<T[]>(slice))));
    return reads.flat().map(present);
  }

  /** The first `limit` rows that the selector selects. */
  list<T>(selector: Deno.KvListSelector, limit: number): Promise<Entry<T>[]> {
    const batchSize = Math.min(limit, MAX_BATCH);
    return this.#run(() => Array.fromAsync(this.#kv.list<T>(selector, { limit, batchSize })));
  }

  /**
   * Commits what `build` puts into an atomic operation. Resolves to its versionstamp, or to undefined
   * when a check failed and nothing was applied.
   *
   * A KV Connect client repeats a commit whose reply was lost, and the repetition fails its own
   * checks. So every commit also leaves a mark, in a slot that no concurrent commit uses, by which a
   * refused commit that did apply is known.
   */
  async commit(slot: string, build: (operation: Deno.AtomicOperation) => void): Promise<string | undefined> {
    const mark = ["commits", this.#instance, slot];
    const sequence = ++this.#sequence;
    const result = await retried(() => {
      const operation = this.#kv.atomic();
      build(operation);
      operation.set(mark, sequence);
      return this.#run(() => operation.commit().catch(unlessLocked));
    });
    if (result.ok) return result.versionstamp;
    const left = await this.get<number>(mark);
    return left?.value === sequence ? left.versionstamp : undefined;
  }

  /** Writes and reads, and so finds out whether both work. */
  async probe(): Promise<void> {
    await retried(() => this.commit("probe", () => {}));
    await this.get(["commits", this.#instance, "probe"]);
  }

  /**
   * Closes the KV; drain first. Removes this store's marks if it can: they are of no use to anybody else.
   * A process that is killed leaves its own behind, a few small rows.
   */
  async close(): Promise<void> {
    try {
      const marks = await this.list({ prefix: ["commits", this.#instance] }, 1_000);
      const operation = this.#kv.atomic();
      for (const { key } of marks) operation.delete(key);
      await this.#run(() => operation.commit().catch(unlessLocked));
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    } finally {
      this.#kv.close();
    }
  }

  [Symbol.dispose](): void {
    this.#kv.close();
  }

  /**
   * Starts an operation and waits for it until the deadline. While too many that were given up still
   * hang (a KV Connect client repeats its writes for ever), one a deadline is tried and the others are
   * refused at once.
   */
  async #run<T>(start: () => Promise<T>): Promise<T> {
    if (this.#hanging >= MAX_HANGING && performance.now() < this.#nextTry) {
      throw new StoreUnavailable("Earlier operations still hang");
    }
    const operation = start();
    try {
      return await withDeadline(operation, this.#deadline);
    } catch (error) {
      this.#hanging++;
      operation.catch(() => {}).finally(() => this.#hanging--);
      this.#nextTry = performance.now() + this.#deadline;
      // A commit that was given up may still land and overwrite its mark: leave these slots to it.
      this.#instance = crypto.randomUUID();
      throw error;
    }
  }
}

function present<T>(entry: Deno.KvEntryMaybe<T>): Entry<T> | null {
  return entry.versionstamp === null ? null : entry;
}

/** Swallows the error that says another process holds the file, so that nothing was done. */
export function unlessLocked(error: unknown): undefined {
  if (error instanceof Error && error.message.includes("database is locked")) return;
  throw error;
}
