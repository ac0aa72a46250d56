import { AGAIN, CorruptRow, type Entry, type Store, type VersionRow, versionstampOf } from "../engine/mod.ts";
import type { Call } from "../service/mod.ts";
import type { Feed } from "./feed.ts";
import type { Hook, Item } from "./hook.ts";
import { Hooks } from "./hooks.ts";
import type { ItemMetrics } from "./metrics.ts";
import { requireWriter, type Resource, withDefaults } from "./resource.ts";
import { type Generations, type ItemRows, ownerIn } from "./rows.ts";
import { decodeItem, storedItemIn, UnreadableItem } from "./stored_item.ts";

/*
 * An item can be unreadable because its row is damaged, or because a release declares a field otherwise than the one
 * that stored it. Lists leave it out. Operators can delete it, and the deletion of its account does.
 *
 * The other rows of an item follow from its fields, which may be unknown. So a scan finds its rows in the indexes by
 * its id. Of its hooks, those whose field can be read run as for any other deletion. Rows of other hooks stay, which is
 * reported; a rebuild writes the rows of all hooks anew.
 */

/** Options of {@linkcode UnreadableItems}. */
export interface UnreadableItemsOptions {
  readonly store: Store;
  /** All collections of the catalogue. */
  readonly resources: readonly Resource[];
  readonly generations: Generations | undefined;
  readonly rows: ItemRows;
  readonly feed: Feed;
  /** The row whose version changes when an item does. */
  readonly version: VersionRow;
  readonly metrics: ItemMetrics;
  /** Called with what the operator should know. */
  readonly report: (fault: Error) => void;
}

/** Maximum number of items that are remembered, so that each is reported once. Further ones are not reported. */
const MAX_COUNTED = 10_000;
/** Number of rows that a scan reads at a time. */
const STEP = 500;

/** The items of a collection that its declaration cannot read. */
export class UnreadableItems {
  readonly #resource: Resource;
  readonly #options: UnreadableItemsOptions;
  readonly #counted: Set<number> = new Set();

  constructor(resource: Resource, options: UnreadableItemsOptions) {
    this.#resource = resource;
    this.#options = options;
    options.metrics.unreadable.add(0, resource.name);
  }

  /** Counts an item. Returns false if it was counted before. */
  add({ id }: UnreadableItem): boolean {
    if (this.#counted.has(id) || this.#counted.size >= MAX_COUNTED) return false;
    this.#counted.add(id);
    this.#options.metrics.unreadable.add(1, this.#resource.name);
    return true;
  }

  /** What `read` makes of these rows, without those that it cannot read. Each of those is reported once. */
  leaveOut<Result extends string | object>(
    entries: readonly Entry[],
    read: (entry: Entry) => Result,
  ): Result[] {
    return entries.flatMap((entry) => {
      const made = unlessUnreadable(() => read(entry), (error) => {
        if (this.add(error)) this.#options.report(error);
      });
      return made === undefined ? [] : [made];
    });
  }

  /**
   * Deletes all rows of an item that can be known. Resolves to AGAIN if the item has changed in the meantime. With
   * `ownerId`, only rows of that account are searched for.
   *
   * @throws {ApiError} if an item of another collection refers to it, or if a client may not delete it.
   */
  async remove(
    id: number,
    { acting, transact }: Pick<Call, "acting" | "transact">,
    ownerId?: string,
  ): Promise<true | typeof AGAIN> {
    const { store, resources, generations, rows, feed, version, report } = this.#options;
    const key = rows.item(id);
    const before = await store.get(key);
    if (before && this.#canRead(before)) return AGAIN;
    const { item, extend } = this.#knownOf(before);
    const hooks = new Hooks({ ...this.#resource, extend }, resources, generations);
    const accountId = ownerId ?? (before && ownerIn(before) || undefined);
    requireWriter(this.#resource, accountId ?? "", acting);
    const change = { ...{ id, before: item, accountId }, by: acting.by, now: acting.now };
    const indexed = await this.#find(id, ownerId);
    const faults = await transact<readonly Error[] | null>({
      reads: [key],
      decide: (found, write) => {
        if (versionstampOf(found.get(key)) !== versionstampOf(before)) return null;
        for (const row of [key, ...indexed]) write.delete(row);
        write.bump(version);
        feed.append(found, write, { id, change: "deleted", ownerId: accountId ?? "" });
        return hooks.apply(found, write, change);
      },
    });
    if (faults === null) return AGAIN;
    for (const fault of faults) report(fault);
    const left = this.#resource.extend.filter((hook) => !extend.includes(hook)).map(({ name }) => name);
    if (before && left.length > 0) {
      const { name } = this.#resource;
      report(
        new CorruptRow(`Rows of ${left.join(" and ")} may remain of item ${id} of ${name}: rebuild ${name}`),
      );
    }
    return true;
  }

  /** The fields of an item as far as they can be read, and the hooks that need no others. */
  #knownOf(entry: Entry | null): { readonly item?: Item; readonly extend: readonly Hook[] } {
    const { fields, extend } = this.#resource;
    const stored = entry && unlessUnreadable(() => storedItemIn(this.#resource, entry));
    if (!stored) return { extend: [] };
    const item: Item = { id: Number(stored.members.id), ...withDefaults(fields, stored.members) };
    const isKnown = (field = "") => fields[field]?.accepts(item[field]) === true;
    return { item, extend: extend.filter(({ field }) => isKnown(field)) };
  }

  /** Whether a later change has made the item readable. */
  #canRead(entry: Entry): boolean {
    return unlessUnreadable(() => decodeItem(this.#resource, entry)) !== undefined;
  }

  /** The keys of the rows that list an item. */
  async #find(id: number, ownerId: string | undefined): Promise<readonly Deno.KvKey[]> {
    const found: Deno.KvKey[] = [];
    for (const prefix of this.#options.rows.indexes(ownerId)) {
      let page: readonly Entry[];
      let start: Deno.KvKey | undefined;
      do {
        page = await this.#options.store.list(start ? { prefix, start } : { prefix }, STEP);
        const keys = page.map(({ key }) => key);
        found.push(...keys.filter((key) => key.at(-1) === id));
        const last = keys.at(-1);
        // Rows with the same values are in the order of their ids, so those that cannot be the item's are skipped.
        if (last) start = [...last.slice(0, -1), Number(last.at(-1)) < id ? id : Infinity];
      } while (page.length === STEP);
    }
    return found;
  }
}

/** The result of `read`; undefined, after `noted`, if it throws an UnreadableItem. */
function unlessUnreadable<Result extends string | object>(
  read: () => Result,
  noted: (error: UnreadableItem) => void = () => {},
): Result | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof UnreadableItem)) throw error;
    noted(error);
    return undefined;
  }
}
