import { DAY } from "../base/mod.ts";
import { CorruptRow, type Entry, type Store, Transactions, Versions, versionstampOf } from "../engine/mod.ts";
import { ApiError } from "../web/mod.ts";
import type { Catalogue } from "./catalogue.ts";
import { collectionKey, encodeCollection, findGenerations, readersIn } from "./collection_row.ts";
import { appendGap, FEED, newTag } from "./feed.ts";
import { Items } from "./items.ts";
import { requireValid } from "./open.ts";
import { type Resource, ResourceError } from "./resource.ts";
import { FIRST, GENERATIONS, type Generations, OWN } from "./rows.ts";
import { UnreadableItem } from "./stored_item.ts";

/*
 * A release that derives other rows from items than the one before, such as those of another filter, needs a rebuild of
 * the collection before it starts.
 *
 * A rebuild writes all rows that are derived from items in a new generation, which is part of their keys, so nobody
 * reads them yet. Then one commit switches: the row that remembers the collection gets the declaration and the
 * generation. Until then nothing has changed, whatever happens to the rebuild.
 *
 * Why the new generation is complete: the commit checks that the version rows of the collection and of those that it
 * refers to, which every change of an item changes, and the row that remembers the collection are as they were before
 * the first item was read.
 *
 * Why nobody goes on with the old one: the same commit gives the store's rows another revision, so every process that
 * runs stops with its next commit, which has no effect.
 *
 * Why no rows are left: the sweep removes generations that are not current. One of them might be being written, so it
 * waits until a day after they began, and a rebuild does not switch any more after half of that.
 */

/** Options of {@linkcode rebuild}. */
export interface RebuildOptions {
  readonly catalogue: Pick<Catalogue, "title" | "resources">;
  readonly store: Store;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** Called with lines for the operator: progress, and which items do not fit the declaration. */
  readonly notice: (line: string) => void;
}

/** Number of items whose rows are written at a time. */
const BATCH = 500;
/** Number of items between two lines of progress. */
const STEP = 10_000;

/**
 * Writes all rows that are derived from the items of a collection again, and remembers its declaration.
 *
 * @throws {ResourceError} if the declaration is invalid or does not fit all items, or if items were changed meanwhile.
 *   Then nothing has changed.
 * @throws {StoreUnavailable}
 */
export async function rebuild(
  resource: Resource,
  { catalogue, store, clock, notice }: RebuildOptions,
): Promise<void> {
  requireValid(catalogue);
  const { name, rows } = resource;
  const began = clock();
  const generation = `${timeOf(began)} ${crypto.randomUUID().slice(0, 8)}`;
  const transactions = new Transactions(store, clock);
  const referred = catalogue.resources.filter((other) =>
    resource.extend.some(({ refersTo }) => refersTo === other.name)
  );
  const checked = [collectionKey(name), ...[resource, ...referred].map(({ rows }) => rows.version)];
  const before = await store.getMany(checked);
  const generations = new Map(await findGenerations(store, catalogue.resources)).set(name, generation);
  const items = new Items(resource, { store, transactions, versions: new Versions(store), generations });

  const requireUnchanged = (rows: readonly (Entry | null)[], now: number) => {
    const isSame = rows.every((row, index) => versionstampOf(row) === versionstampOf(before[index] ?? null));
    if (!isSame || now > began + DAY / 2) throw overtaken(name);
  };

  let [done, misfits] = [0, 0];
  for await (const page of store.pages([...rows.items, 0], [...rows.items, Infinity], BATCH)) {
    // The switch would notice it, too, but only after all items.
    requireUnchanged(await store.getMany(checked), clock());
    const results = await Promise.allSettled(
      page.map((entry) => derive(entry, began, { items, transactions })),
    );
    for (const [index, result] of results.entries()) {
      if (result.status === "fulfilled") continue;
      const { reason } = result;
      if (reason instanceof ApiError || (reason instanceof UnreadableItem && !reason.isDamaged)) misfits++;
      notice(`Item ${String(page[index]?.key.at(-1))} of ${name}: ${whyLeftOut(reason)}`);
    }
    const progress = Math.floor((done + page.length) / STEP);
    if (progress > Math.floor(done / STEP)) notice(`${progress * STEP} items are done.`);
    done += page.length;
  }
  if (misfits > 0) {
    throw new ResourceError(
      `${misfits} of ${done} items do not fit the declaration of ${name}, so nothing was changed. Change or delete them ` +
        "with the release before, or change the declaration. Then rebuild again.",
    );
  }

  const tag = newTag();
  await transactions.run({
    reads: checked,
    decide(found, write, now) {
      requireUnchanged(checked.map((key) => found.get(key)), now);
      const isReadByOthers = readersIn(found.get(collectionKey(name))) !== resource.readableBy;
      if (isReadByOthers && found.features[FEED]) appendGap(found, write, tag);
      write.set(collectionKey(name), encodeCollection(resource, generation));
      store.schema.revise(write);
      return null;
    },
  });
  notice(`Rebuilt ${name}: ${done} items. Now start the release that declares them so.`);
}

function overtaken(name: string): ResourceError {
  return new ResourceError(
    `Items of ${name} were changed during the rebuild, or it took too long, so nothing was changed. Stop every ` +
      "process of the service, and rebuild again.",
  );
}

/** Writes the rows that are derived from an item. @throws {UnreadableItem} */
async function derive(
  entry: Entry,
  now: number,
  { items, transactions }: { readonly items: Items; readonly transactions: Transactions },
): Promise<void> {
  try {
    await transactions.run(items.deriving(entry, now));
  } catch (error) {
    if (error instanceof UnreadableItem && error.isDamaged) await transactions.run(items.keeping(entry));
    throw error;
  }
}

/** Why an item has no derived rows. @throws the error itself if the reason is another. */
function whyLeftOut(error: unknown): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof CorruptRow) return `${error.message}.`;
  throw error;
}

/**
 * Removes some of the rows of generations that are not current, once they and the current one began more than a day
 * before `now`. Resolves to true if there may be more.
 */
export async function sweepGenerations(
  store: Store,
  resources: readonly Resource[],
  generations: Generations,
  now: number,
): Promise<boolean> {
  const end = timeOf(now - DAY);
  for (const { name, rows } of resources) {
    const current = generations.get(name) ?? FIRST;
    // Until then, a process that has not committed anything since the rebuild might still read the one before.
    if (current >= end) continue;
    const others: { start: Deno.KvKey; end: Deno.KvKey }[] = [GENERATIONS, OWN].flatMap((table) => [
      { start: [table, name], end: [table, name, current] },
      { start: [table, name, `${current}\0`], end: [table, name, end] },
    ]);
    // Indexes of the first generation. Names of fields begin with letters.
    if (current !== FIRST) others.push({ start: rows.index([]), end: rows.index(["~"]) });
    for (const range of others) if (await store.removeAll(range)) return true;
  }
  return false;
}

/** A time in ms since the epoch, as text that sorts. */
function timeOf(time: number): string {
  return new Date(time).toISOString();
}
