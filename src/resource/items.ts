import {
  batched,
  decodeText,
  encodeText,
  type Entry,
  Ids,
  retried,
  type Rows,
  type Store,
  type Transaction,
  type Transactions,
  type VersionRow,
  type Versions,
  type Write,
} from "../engine/mod.ts";
import { type JsonObject, stringifyJson } from "../web/schema.ts";
import type { Acting, Call } from "../service/mod.ts";
import type { Catalogue } from "./catalogue.ts";
import { Feed } from "./feed.ts";
import { Hooks } from "./hooks.ts";
import type { Item } from "./hook.ts";
import { type Added, type Collection, type FieldsOf, ItemsIn } from "./items_in.ts";
import { ItemMetrics } from "./metrics.ts";
import { type Cursor, cursorAfter, type ItemOrder } from "./order.ts";
import type { Resource } from "./resource.ts";
import { FIRST, type Generations, ItemRows, OWN, ownerIn } from "./rows.ts";
import { errorsOfRule } from "./rules.ts";
import { decodeItem, type Owned, storedItemIn, UnreadableItem } from "./stored_item.ts";
import { UnreadableItems } from "./unreadable_items.ts";

/** Which items to list: those that have all these values. */
export type ItemQuery = JsonObject & ItemOrder & {
  /** Maximum number of items. */
  readonly limit: number;
};

/** A page of items. */
export interface ItemPage {
  /** A JSON array. */
  readonly json: string;
  /** The cursor of the next page, if there is one. */
  readonly next: Cursor | undefined;
  /** The rows that it was made from, with their versions. */
  readonly version: string;
  /** Size of these rows. */
  readonly bytes: number;
}

/** A page of items with their owners. */
interface OwnedPage<Value extends Item> {
  readonly items: readonly Owned<Value>[];
  /** The cursor of the next page, if there may be one. */
  readonly next: Cursor | undefined;
}

/** A row that was found. Its owner is known before its item is decoded. */
export interface FoundItem {
  /** Undefined if the row does not say. */
  readonly ownerId: string | undefined;
  /** Size of the row, in bytes. */
  readonly bytes: number;
  /** Decodes the item. @throws {UnreadableItem} */
  readonly json: () => string;
}

const DELETED_AT_ONCE = 100;

/** Options of {@linkcode Items}. */
export interface ItemsOptions {
  readonly store: Store;
  readonly transactions: Transactions;
  readonly versions: Versions;
  /** All collections of the catalogue: some may refer to this one. By default, there is no other. */
  readonly resources?: readonly Resource[];
  /** By default, no collection was ever rebuilt. */
  readonly generations?: Generations | undefined;
  readonly metrics?: ItemMetrics | undefined;
  /**
   * Called once with each item that lists leave out, if rows may remain of one that was deleted, and with what hooks
   * throw while an account is deleted.
   */
  readonly report?: (fault: Error) => void;
}

/** The items of a collection. Methods that read throw StoreUnavailable if KV fails. */
export class Items<Value extends Item = Item> {
  readonly resource: Resource<Value>;
  /** The row whose version changes when an item does. */
  readonly version: VersionRow;
  /** Ids of new items. */
  readonly ids: Ids;
  /** Reads the row of an item; null if no item has this id. Simultaneous calls share a read. */
  readonly find: (id: number) => Promise<FoundItem | null>;
  /** The errors with which rules and hooks refuse creations and changes, and deletions. */
  readonly errors: Hooks["errors"];
  readonly #store: Store;
  readonly #collection: Collection<Value>;
  readonly #report: (fault: Error) => void;
  readonly #unreadable: UnreadableItems;
  readonly #names: readonly string[];
  /** Names of the fields that every item has. */
  readonly #lasting: ReadonlySet<string>;

  constructor(
    resource: Resource<Value>,
    options: ItemsOptions,
  ) {
    const { store, transactions, versions, resources = [resource], generations } = options;
    const { metrics = new ItemMetrics(), report = () => {} } = options;
    const { rules, fields } = resource;
    this.resource = resource;
    const rows = new ItemRows(resource, generations?.get(resource.name) ?? FIRST);
    const hooks = new Hooks(resource, resources, generations);
    const feed = new Feed(resource);
    this.ids = new Ids(transactions, resource.rows.ids);
    this.version = versions.watch(resource.rows.version);
    const decode = (entry: Entry) => this.#counted(() => decodeItem(resource, entry));
    this.#collection = { resource, rows, hooks, ids: this.ids, feed, version: this.version, decode };
    this.find = batched(async (ids) => {
      const entries = await store.getMany(ids.map((id) => this.#collection.rows.item(id)));
      return (index) => {
        const entry = entries[index] ?? null;
        return entry && {
          ownerId: ownerIn(entry),
          bytes: bytesOf(entry),
          json: () => this.#counted(() => this.#jsonOf(entry)),
        };
      };
    });
    this.#store = store;
    this.#report = report;
    this.#unreadable = new UnreadableItems(resource, {
      ...{ store, resources, generations, metrics, report, rows, feed, version: this.version },
    });
    const ofRules = rules.map(errorsOfRule);
    this.errors = {
      put: [...new Set([...ofRules.flatMap(({ put }) => put), ...hooks.errors.put])],
      delete: [...new Set([...ofRules.flatMap((errors) => errors.delete), ...hooks.errors.delete])],
    };
    this.#names = ["id", ...Object.keys(fields)];
    this.#lasting = new Set(this.#names.filter((name) => !("isOptional" in (fields[name] ?? {}))));
  }

  /** The items in a transaction, as whoever acts may see and change them. */
  in(rows: Rows, write: Write, acting: Acting): ItemsIn<Value> {
    return new ItemsIn(this.#collection, rows, write, acting);
  }

  /** The key of a hook's row, as hooks name it without `"own"` and the collection: `own("slot", 7)`. */
  own(...parts: Deno.KvKey): Deno.KvKey {
    return this.#collection.hooks.locate([OWN, this.resource.name, ...parts]);
  }

  /** Adds an item for an account or, if `ownerId` is empty, for none. */
  adding(
    fields: Partial<FieldsOf<Value>>,
    acting: Acting,
    ownerId: string = acting.accountId,
  ): Transaction<Added<Value>> {
    this.ids.topUp();
    return {
      decide: (rows, write) => this.in(rows, write, acting).adding(fields, ownerId),
    };
  }

  /**
   * Changes an item to the result of `decide`, or removes it if that is null. If it stays as it was, nothing is written.
   * Resolves to the item afterwards, with its owner. `decide` gets null, too, if the account of the call may not read it.
   *
   * @throws {ApiError} if a rule or a hook refuses the change.
   * @throws {HookFault}
   */
  change(
    id: number,
    decide: (owned: Owned<Value> | null) => FieldsOf<Value> | null,
    { acting, transact }: Pick<Call, "acting" | "transact">,
  ): Promise<Owned<Value> | null> {
    return transact<Owned<Value> | null>({
      reads: [this.#collection.rows.item(id)],
      decide: (rows, write) => {
        const items = this.in(rows, write, acting);
        const owned = items.get(id);
        const fields = decide(owned);
        if (owned === null) return null;
        if (fields !== null) return items.set(owned, fields);
        items.remove(owned);
        return null;
      },
    });
  }

  /**
   * Deletes an item, even one that the declaration cannot read. Resolves to false if there is none. With `ownerId`, rows
   * of an unreadable one are searched for among those of that account only.
   *
   * @throws {ApiError} if a rule or a hook refuses the deletion.
   * @throws {HookFault}
   */
  remove(id: number, call: Pick<Call, "acting" | "transact">, ownerId?: string): Promise<boolean> {
    return retried(async () => {
      try {
        const { isFound, faults } = await call.transact(this.#removing(id, call.acting));
        for (const fault of faults) this.#report(fault);
        return isFound;
      } catch (error) {
        if (!(error instanceof UnreadableItem)) throw error;
        return await this.#unreadable.remove(id, call, ownerId);
      }
    });
  }

  #removing(id: number, acting: Acting): Transaction<{ isFound: boolean; faults: readonly Error[] }> {
    return {
      reads: [this.#collection.rows.item(id)],
      decide: (rows, write) => {
        const items = this.in(rows, write, acting);
        const owned = items.get(id);
        if (owned) items.remove(owned);
        return { isFound: owned !== null, faults: items.faults };
      },
    };
  }

  /**
   * Writes the rows that are derived from an item's row, as its creation at `now` would.
   *
   * @throws {UnreadableItem}
   * @throws {HookFault}
   */
  deriving(entry: Entry, now: number): Transaction<null> {
    const owned = decodeItem(this.resource, entry);
    const value = encodeText(decodeText(entry));
    return {
      decide: (rows, write) => {
        this.in(rows, write, { by: "rebuild", accountId: "", now }).derive(owned, value);
        return null;
      },
    };
  }

  /**
   * Writes the row by which the deletion of its account finds an item that no declaration can read. Writes nothing if
   * everyone may read the collection, or if the owner is unknown.
   */
  keeping(entry: Entry): Transaction<null> {
    const ownerId = ownerIn(entry);
    const rows = ownerId === undefined
      ? []
      : this.#collection.rows.indexed({ id: Number(entry.key.at(-1)) }, ownerId);
    return {
      decide(_rows, write) {
        for (const row of rows) if (entry.value instanceof Uint8Array) write.set(row, entry.value.slice());
        return null;
      },
    };
  }

  /** Deletes some of the items that only this account can read. Resolves to true if there may be more. */
  async deleteSome(accountId: string, { now, transact }: Pick<Call, "now" | "transact">): Promise<boolean> {
    if (this.resource.readableBy === "everyone") return false;
    const rows = await this.#listRows({}, accountId, DELETED_AT_ONCE);
    const call = { acting: { by: "removal", accountId, now }, transact } as const;
    const results = await Promise.allSettled(rows.map(async ({ key }) => {
      const id = Number(key.at(-1));
      if (await this.remove(id, call, accountId)) return;
      // An index lists an item that does not exist.
      await retried(() => this.#unreadable.remove(id, call, accountId));
    }));
    for (const result of results) if (result.status === "rejected") throw result.reason;
    return rows.length === DELETED_AT_ONCE;
  }

  /**
   * Reads a page of items with their owners, without those that the declaration cannot read. Beside an order, `query` can
   * have the filters that operators have.
   */
  async listOwned(limit: number, query: JsonObject & ItemOrder = {}): Promise<OwnedPage<Value>> {
    const entries = await this.#listRows(query, undefined, limit);
    const last = entries.length === limit ? entries.at(-1) : undefined;
    return {
      items: this.#unreadable.leaveOut(entries, (entry) => decodeItem(this.resource, entry)),
      next: last && cursorAfter(last.key, query),
    };
  }

  /**
   * Reads a page as an account sees it, without items that the declaration cannot read. Returns `earlier`, a page of the
   * same account for the same query, if its rows have not changed.
   */
  async list(query: ItemQuery, accountId: string, earlier?: ItemPage): Promise<ItemPage> {
    const { limit } = query;
    const entries = await this.#listRows(query, accountId, limit + 1);
    const version = entries.map(({ key, versionstamp }) => `${String(key.at(-1))} ${versionstamp}`).join();
    if (version === earlier?.version) return earlier;
    const shown = entries.slice(0, limit);
    const last = entries.length > limit ? shown.at(-1) : undefined;
    return {
      json: `[${this.#unreadable.leaveOut(shown, (entry) => this.#jsonOf(entry)).join(",")}]`,
      next: last && cursorAfter(last.key, query),
      version,
      bytes: shown.reduce((sum, entry) => sum + bytesOf(entry), 0),
    };
  }

  /** Reads up to `limit` rows of a list as an account sees it, or as operators do if that is undefined. */
  async #listRows(
    query: JsonObject & ItemOrder,
    accountId: string | undefined,
    limit: number,
  ): Promise<Entry[]> {
    const page = this.#collection.rows.page(query, accountId);
    if (page === undefined) return [];
    const { start, end, reverse } = page;
    return await this.#store.list({ start, end }, limit, { reverse });
  }

  /** An item as clients see it: the stored text, if its fields are those of this release. */
  #jsonOf(entry: Entry): string {
    const { json, members } = storedItemIn(this.resource, entry);
    const names = Object.keys(members);
    const shown = this.#names.filter((name) => this.#lasting.has(name) || Object.hasOwn(members, name));
    const isCurrent = names.length === shown.length && names.every((name, index) => name === shown[index]) &&
      this.resource.schemas.item.accepts(members);
    return isCurrent ? json : stringifyJson(decodeItem(this.resource, entry).item);
  }

  /** What `read` returns. Counts the item if it cannot be read. */
  #counted<Result>(read: () => Result): Result {
    try {
      return read();
    } catch (error) {
      if (error instanceof UnreadableItem) this.#unreadable.add(error);
      throw error;
    }
  }
}

function bytesOf({ value }: Entry): number {
  return value instanceof Uint8Array ? value.length : 0;
}

/** The items of all collections of a catalogue, in its order. */
export function itemsOf({ resources }: Catalogue, options: Omit<ItemsOptions, "resources">): Items[] {
  return resources.map((resource) => new Items(resource, { ...options, resources }));
}

/**
 * Finds a collection with its types: `items.find(of(INVOICES))`. The result is undefined if the catalogue does not have
 * it.
 */
export function of<Value extends Item>(
  resource: Resource<Value>,
): (items: Items) => items is Items<Value> {
  return (items): items is Items<Value> => items.resource === resource;
}
