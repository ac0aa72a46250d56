/**
 * Deno KV as exact transactions.
 *
 * A transaction names the rows it reads, and decides from them what to write. Many transactions share one commit, so
 * 64 writers of one row commit hundreds of times as often as with one commit each. What it promises:
 *
 * - A transaction is carried out once or not at all, even if KV repeats a commit, applies it late, or loses the
 *   response. `Unresolved` means that it is not known which.
 * - Its result is what it decided on the rows that its commit checked.
 * - Every operation on KV has a deadline: five seconds, then `StoreUnavailable`. A transaction is several operations, and
 *   finding out what became of a lost commit takes ten seconds more. So while KV hangs, `run` can take 20 s and longer.
 *   `mayBegin` ends it earlier, between two operations.
 * - No transaction waits forever because others write the same rows. After five seconds of conflicts, it is rejected.
 *
 * What it costs: a row with a marker for each lane, and one more check in each commit. A transaction that reads rows needs
 * two round trips; if its rows are passed in, it needs one. Values derived from rows are cached until a version row changes,
 * and one read of version rows tells all waiting requests that they are current.
 *
 * What it needs:
 *
 * - A KV of its own. With `create`, `openStore` sets up an empty one. It refuses a KV whose rows are not from this
 *   engine, or from a release that it does not know, and the SQLite database of another program. The row `["schema"]`,
 *   and rows whose keys begin with `"commits"`, belong to the engine.
 * - Keys without bigints. `run` throws a `TypeError` for a bigint in the key of a row that a transaction reads.
 * - `store.sweep()`, about once an hour, until it resolves to false. A killed process leaves up to about twenty markers,
 *   which only this removes, after a day.
 * - Clocks of processes that differ by less than half a day. If they differ by more, a transaction can end as `Unresolved`
 *   for this reason alone; it is still carried out at most once.
 * - `store.close()` at the end, and `settle()` of `Ids` before it.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const store = await openStore(":memory:", { clock: Date.now, create: true });
 * const transactions = new Transactions(store, { clock: Date.now });
 * const versions = new Versions(store);
 * const stock = versions.watch(["versions", "stock"]);
 * const toys = ["stock", "toys"];
 *
 * const buy: Transaction<number> = {
 *   queue: "changes",
 *   reads: [toys],
 *   decide(rows, write) {
 *     const row = rows.get(toys);
 *     const left = (row ? decodeJson<number>(row) : 100) - 1;
 *     write.set(toys, encodeJson(left));
 *     write.bump(stock);
 *     return left;
 *   },
 * };
 * const bought = await Promise.all([1, 2, 3].map(() => transactions.run(buy)));
 * assertEquals(bought.map(({ result }) => result), [99, 98, 97]); // in one commit
 *
 * const cache = new VersionedCache<string, number>(stock, 1_000);
 * const read = () => store.get(toys).then((row) => row ? decodeJson<number>(row) : 100);
 * await versions.check();
 * assertEquals(await cache.get("toys", read), 97);
 * await store.close();
 * ```
 *
 * @module
 */
export { batched, type BatchOptions } from "./batch.ts";
export { VersionedCache } from "./cache.ts";
export { AGAIN, KV_DEADLINE, retried, StoreUnavailable, withDeadline } from "./deadline.ts";
export { makeFolder } from "./file.ts";
export { Ids } from "./ids.ts";
export {
  isUrl,
  MEMORY,
  nameOfKv,
  OpenError,
  type OpenOptions,
  openStore,
  type Patience,
  requireReadable,
} from "./open.ts";
export {
  CorruptRow,
  decodeCount,
  decodeJson,
  decodeText,
  encodeJson,
  encodeText,
  type Entry,
  versionstampOf,
} from "./row.ts";
export { Store, type StoreOptions } from "./store.ts";
export {
  type Done,
  type KnownRow,
  type Queue,
  type Rows,
  type RunOptions,
  type Transaction,
  Unresolved,
  type Write,
} from "./transaction.ts";
export { Transactions, type TransactionsOptions } from "./transactions.ts";
export {
  noteVersion,
  Outdated,
  VersionCheck,
  type VersionRow,
  Versions,
  type VersionsOptions,
} from "./versions.ts";
