import {
  encodeText,
  type Entry,
  type IdSource,
  nameOf,
  type Rows,
  type VersionRow,
  type Write,
} from "../engine/mod.ts";
import { type JsonObject, stringifyJson } from "../web/schema.ts";
import type { Acting } from "../service/mod.ts";
import type { Feed, ItemChange } from "./feed.ts";
import type { Change, Item } from "./hook.ts";
import { HookFault, type Hooks } from "./hooks.ts";
import { mayRead, requireWriter, type Resource, withDefaults } from "./resource.ts";
import { type ItemRows, ownerIn } from "./rows.ts";
import { requireRules } from "./rules.ts";
import type { Owned } from "./stored_item.ts";

/** The fields of an item. Those of a new one that are left out get their defaults. */
export type FieldsOf<Value extends Item> = Omit<Value, "id">;

/** An item that was added, and its JSON. */
export interface Added<Value extends Item = Item> {
  readonly item: Value;
  readonly json: string;
}

/** A collection, as its transactions need it. */
export interface Collection<Value extends Item> {
  readonly resource: Resource<Value>;
  readonly rows: ItemRows;
  readonly hooks: Hooks;
  readonly ids: IdSource;
  readonly feed: Feed;
  /** The row whose version changes when an item does. */
  readonly version: VersionRow;
  /** Decodes a row. @throws {UnreadableItem} */
  readonly decode: (entry: Entry) => Owned<Value>;
}

/** Those who see every item. */
const SEE_ALL: readonly Acting["by"][] = ["operator", "removal", "rebuild"];

/**
 * The items of a collection in a transaction. All changes of items are made here, so that rules, hooks and lists are
 * never left out. Its methods throw a HookFault if a rule or a hook breaks its own rules.
 */
export class ItemsIn<Value extends Item = Item> {
  /** What hooks have thrown while an account is deleted, which they cannot refuse. */
  readonly faults: Error[] = [];
  readonly #collection: Collection<Value>;
  readonly #rows: Rows;
  readonly #write: Write;
  readonly #acting: Acting;
  /** The rows of the items that this transaction has. */
  readonly #entries: Map<Owned<Value>, Entry> = new Map();

  constructor(collection: Collection<Value>, rows: Rows, write: Write, acting: Acting) {
    this.#collection = collection;
    this.#rows = rows;
    this.#write = write;
    this.#acting = acting;
  }

  /**
   * The item; null if there is none, or if `accountId` may not read it. Operators, the deletion of an account and a
   * rebuild see all.
   *
   * @throws {UnreadableItem}
   */
  get(id: number): Owned<Value> | null {
    const { resource, rows, decode } = this.#collection;
    const { by, accountId } = this.#acting;
    const entry = this.#rows.get(rows.item(id));
    if (entry === null) return null;
    // Asked first, so that nobody else notices an item that this release cannot decode.
    const isSeen = SEE_ALL.includes(by) || mayRead(resource, ownerIn(entry) ?? accountId, accountId);
    return isSeen ? this.#keep(decode(entry), entry) : null;
  }

  /**
   * Adds an item with a new id for an account or, if `ownerId` is empty, for none.
   *
   * @throws {ApiError} if a rule or a hook refuses it, or if a client may not add it.
   */
  add(fields: Partial<FieldsOf<Value>>, ownerId: string = this.#acting.accountId): Value {
    return this.adding(fields, ownerId).item;
  }

  /** Does what `add` does, and also returns the JSON of the item. */
  adding(fields: Partial<FieldsOf<Value>>, ownerId: string): Added<Value> {
    const { resource, ids } = this.#collection;
    const { creation, change } = resource.times;
    requireWriter(resource, ownerId, this.#acting);
    const times = [...creation, ...change];
    const values = times.length === 0 ? fields : { ...fields, ...this.#timed(times) };
    const item = this.#shaped(this.#write.draw(ids), values);
    this.#decide({ id: item.id, after: item }, ownerId);
    const json = stringifyJson(item);
    this.#put(item, ownerId, json);
    this.#log(item.id, "created", ownerId);
    return { item, json };
  }

  /**
   * Replaces all fields of an item from `get`; fields that a later release has stored stay. If nothing is different,
   * nothing is written. Returns the item as it is then.
   *
   * @throws {ApiError} if a rule or a hook refuses it, or if a client may not change it.
   * @throws {TypeError} if it is not the item that this transaction has.
   */
  set(owned: Owned<Value>, fields: FieldsOf<Value>): Owned<Value> {
    const { item: before, ownerId, rest } = owned;
    this.#require(owned);
    const { creation, change } = this.#collection.resource.times;
    const kept = Object.fromEntries([...creation, ...change].map((name) => [name, before[name]]));
    const same = this.#shaped(before.id, { ...fields, ...kept });
    if (stringifyJson(same) === stringifyJson(before)) return owned;
    const item = change.length === 0 ? same : this.#shaped(before.id, { ...same, ...this.#timed(change) });
    this.#decide({ id: before.id, before, after: item }, ownerId);
    this.#deleteIndexed(owned, item);
    this.#put(item, ownerId, stringifyJson({ ...item, ...rest }));
    this.#log(item.id, "updated", ownerId);
    const entry = this.#rows.get(this.#collection.rows.item(item.id));
    const changed = { item, ownerId, ...(rest && { rest }) };
    return entry ? this.#keep(changed, entry) : changed;
  }

  /**
   * Deletes an item from `get`.
   *
   * @throws {ApiError} if a rule or a hook refuses it, or if a client may not delete it.
   * @throws {TypeError} if it is not the item that this transaction has.
   */
  remove(owned: Owned<Value>): undefined {
    const { item, ownerId } = owned;
    this.#require(owned);
    this.#decide({ id: item.id, before: item }, ownerId);
    this.#deleteIndexed(owned);
    this.#write.delete(this.#collection.rows.item(item.id));
    this.#write.bump(this.#collection.version);
    this.#log(item.id, "deleted", ownerId);
  }

  /**
   * Writes the rows that are derived from an item, as its creation would.
   *
   * @throws {ApiError} if a hook refuses it.
   */
  derive({ item, ownerId }: Owned<Value>, value: Uint8Array<ArrayBuffer>): undefined {
    this.#decide({ id: item.id, after: item }, ownerId);
    for (const row of this.#collection.rows.indexed(item, ownerId)) this.#write.set(row, value);
  }

  #keep(owned: Owned<Value>, entry: Entry): Owned<Value> {
    this.#entries.set(owned, entry);
    return owned;
  }

  /** Requires that an item is the one that this transaction has, and that whoever acts may change it. */
  #require(owned: Owned<Value>): void {
    const { resource, rows } = this.#collection;
    const { item: { id }, ownerId } = owned;
    const entry = this.#entries.get(owned);
    if (entry === undefined || entry !== this.#rows.get(rows.item(id))) {
      throw new TypeError(
        `Item ${id} of ${resource.name} is not the one that this transaction has: get it again`,
      );
    }
    requireWriter(resource, ownerId, this.#acting);
  }

  /** Lets rules and hooks decide. */
  #decide(change: Pick<Change, "id" | "before" | "after">, ownerId: string): void {
    const { resource, hooks } = this.#collection;
    const { by, now } = this.#acting;
    const whole = { ...change, accountId: ownerId === "" ? undefined : ownerId, by, now };
    requireRules(resource, whole);
    if (!hooks.isEmpty) this.faults.push(...hooks.apply(this.#rows, this.#write, whole));
  }

  /** These fields with the time of the request. */
  #timed(names: readonly string[]): JsonObject {
    if (names.length === 0) return {};
    const time = new Date(this.#acting.now).toISOString();
    return Object.fromEntries(names.map((name) => [name, time]));
  }

  /** An item with these fields in declared order. @throws {HookFault} if one has a value that is not declared. */
  #shaped(id: number, values: JsonObject): Value {
    const { name, fields, schemas } = this.#collection.resource;
    const item: JsonObject = { id, ...withDefaults(fields, values) };
    if (schemas.item.accepts(item)) return item;
    const field = Object.keys(fields).find((field) => !fields[field]?.accepts(item[field])) ?? "id";
    throw new HookFault(`An item of ${name} was to be stored with a value of ${field} that is not declared`);
  }

  /** Writes an item's row and those in the indexes. */
  #put(item: Item, ownerId: string, json: string): void {
    const { rows, version } = this.#collection;
    const value = encodeText(`${json}\n${ownerId}`);
    for (const row of [rows.item(item.id), ...rows.indexed(item, ownerId)]) this.#write.set(row, value);
    this.#write.bump(version);
  }

  /** Tells the feed what happened to an item. */
  #log(id: number, change: ItemChange["change"], ownerId: string): void {
    this.#collection.feed.append(this.#rows, this.#write, { id, change, ownerId });
  }

  /** Deletes the rows in the indexes that do not list an item any more. */
  #deleteIndexed({ item, ownerId }: Owned<Value>, after?: Item): void {
    const { rows } = this.#collection;
    const kept = new Set(after && rows.indexed(after, ownerId).map(nameOf));
    for (const row of rows.indexed(item, ownerId)) {
      if (!kept.has(nameOf(row))) this.#write.delete(row);
    }
  }
}
