/**
 * Deno KV as exact transactions.
 *
 * A transaction gets rows, and decides from them what to write. Many transactions share one commit, so 64 writers of one
 * row are hundreds of times as fast as with a commit for each transaction. What it promises:
 *
 * - A transaction is carried out once or not at all, even if KV repeats a commit, applies it late, or loses the
 *   response. `Unresolved` means that it is not known which.
 * - Its result is what it decided on the rows that its commit checked.
 * - A log, to which transactions append, has the entries of all that were carried out, in the order of commits.
 * - While a feature is switched, each transaction is carried out as it decided either before or after that.
 * - Every operation on KV has a deadline: five seconds, then `StoreUnavailable`. A transaction takes several
 *   operations, and finding out the result of a lost commit takes up to ten seconds more. So while KV hangs, `run` can
 *   take 20 s or longer. To end it earlier, between two operations, pass `mayBegin`.
 * - No transaction waits forever because others write the same rows. After five seconds of conflicts, it is rejected.
 *
 * What it costs: one more check in each commit and, on a server, a row with a marker for each lane. A transaction that
 * writes needs two round trips if it gets rows that exist, and one more each time their contents lead to further rows. It
 * needs one if its rows do not exist, or if they are passed in. Values derived from rows are cached until a version
 * row changes, and one read of version rows tells all waiting requests whether these values are current.
 *
 * What it needs:
 *
 * - A KV of its own. With `create`, `openStore` sets up an empty one. It refuses a KV with rows that another program or
 *   an unknown release has written, and an SQLite database that is not a KV. The row `["schema"]`, and rows whose keys
 *   begin with `"commits"`, belong to the engine.
 * - Transactions of at most 8 rows, with a `decide` that has no effect other than its writes: it runs before its rows
 *   are read, too, to find out which they are.
 * - Keys without bigints. `run` throws a `TypeError` for a bigint in the key of a row that a transaction reads.
 * - Calls of `store.sweep()`, about once an hour, each time until it resolves to false. A killed process leaves up to
 *   about twenty markers on a server, which only these calls remove, after a day.
 * - On a server, processes whose clocks differ by less than half a day. If they differ by more, that alone can make a
 *   transaction end as `Unresolved`; it is still carried out at most once.
 * - At the end, `close()` of each `Ids`, and then `store.close()`.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const store = await openStore(":memory:", { clock: Date.now, create: true });
 * const transactions = new Transactions(store, Date.now);
 * const versions = new Versions(store);
 * const stock = versions.watch(["versions", "stock"]);
 * const toys = ["stock", "toys"];
 *
 * const buy: Transaction<number> = {
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
export type { Patience } from "./backend.ts";
export { batched, type BatchOptions } from "./batch.ts";
export { VersionedCache } from "./cache.ts";
export { AGAIN, KV_DEADLINE, retried, StoreUnavailable, withDeadline } from "./deadline.ts";
export { makeFolder, MEMORY } from "./file.ts";
export { Ids } from "./ids.ts";
export { EngineMetrics } from "./metrics.ts";
export { isUrl, nameOfKv, OpenError, type OpenOptions, openStore, requireReadable } from "./open.ts";
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
export type { Features } from "./schema_version.ts";
export {
  keyBytesOf,
  LARGEST_KEY,
  LARGEST_VALUE,
  MAX_KEY_BYTES,
  MAX_MUTATIONS,
  MAX_VALUE_BYTES,
} from "./sizes.ts";
export { Store, type StoreOptions } from "./store.ts";
export {
  type Decided,
  type Done,
  type IdSource,
  type KnownRow,
  MAX_ROWS,
  type Rows,
  TooManyRows,
  type Transaction,
  Unresolved,
  type Value,
  type Write,
} from "./transaction.ts";
export { Transactions } from "./transactions.ts";
export { nameOf, raiseVersion, type VersionRow, Versions } from "./versions.ts";
