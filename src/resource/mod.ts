/**
 * A collection of items that accounts own, from one declaration.
 *
 * `resource()` declares fields, filters and texts. From these follow the operations (list with pages, ETags and
 * filters; create with an Idempotency-Key; get; update and delete by the owner, with preconditions), their rows, and
 * their part of the OpenAPI documents. `createOnce()` makes any other creation safe to repeat. What it promises: a page
 * is always full and current; an id is never reused; a client that sends If-Match does not overwrite a change that it
 * has not seen.
 *
 * Forks that began with version 1.1.0 also import `ACCESS`, `Plans` and their like from this door.
 *
 * What it costs: a row for each item, and one for each combination of its filters in each order, each with the whole
 * item; if only its owner reads an item, and lists can be sorted, twice as many, because operators read all. A write
 * changes the collection's version row, so pages in memory are read again after it.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { openStore, Transactions, Versions } from "../engine/mod.ts";
 * import { boolean, text } from "../web/schema.ts";
 *
 * const notes = resource({
 *   name: "notes",
 *   item: "Note",
 *   tag: { name: "Notes", description: "All notes" },
 *   noun: ["a note", "notes"],
 *   fields: { title: text({ max: 100 }), done: boolean() },
 *   filters: ["done"],
 *   readableBy: "everyone",
 *   writableBy: "owner",
 *   examples: { item: { title: "Milk", done: false }, change: { done: true } },
 * });
 *
 * const store = await openStore(":memory:", { clock: Date.now, create: true });
 * const transactions = new Transactions(store, Date.now);
 * const items = new Items(notes, { store, transactions, versions: new Versions(store) });
 * const acting = { by: "account", accountId: "acct_1", now: Date.now() } as const;
 * await transactions.run(items.adding({ title: "Milk", done: true }, acting));
 * const page = await items.list({ limit: 20, done: true }, "acct_1");
 * assertEquals(page.json, '[{"id":1,"title":"Milk","done":true}]');
 * await store.close();
 * ```
 *
 * @module
 */
export {
  ACCESS,
  type Call,
  type Identity,
  type KeyPrefixes,
  type Operation,
  type Plans,
} from "../service/mod.ts";
export type { Catalogue } from "./catalogue.ts";
export { check } from "./check.ts";
export { openCollections } from "./open.ts";
export { rebuild, type RebuildOptions, sweepGenerations } from "./rebuild.ts";
export { createOnce, type Creation, once, type Reply, sweepReplies } from "./create_once.ts";
export { type ItemPage, type ItemQuery, Items, itemsOf, type ItemsOptions, of } from "./items.ts";
export { type Added, type FieldsOf, ItemsIn } from "./items_in.ts";
export {
  accountLog,
  appendGap,
  EVERYONES_LOG,
  FEED,
  GAPS_LOG,
  type ItemChange,
  type LoggedChange,
  newTag,
  OPERATORS_LOG,
  otherLogOf,
} from "./feed.ts";
export { ItemMetrics } from "./metrics.ts";
export { type Owned, UnreadableItem } from "./stored_item.ts";
export { exists, type ExistsOptions, unique, type UniqueOptions } from "./constraints.ts";
export type { Change, Hook, HookOf, Item, RowCounts, Rule } from "./hook.ts";
export { filterParameters, orderParameters, queryTextOf, requireOneOrder } from "./list_parameters.ts";
export { itemOperations, type ItemOperationsOptions } from "./operations.ts";
export {
  MAX_ITEMS,
  ownedItemOperations,
  type OwnedSchemas,
  ownedSchemasOf,
  type Owners,
  selectionOf,
} from "./operator_item_operations.ts";
export type { ItemOrder } from "./order.ts";
export {
  type Declaration,
  type ItemOf,
  type Resource,
  resource,
  ResourceError,
  type RowKeys,
} from "./resource.ts";
export { createdAt, ofService, updatedAt } from "./service_fields.ts";
export type { Generations } from "./rows.ts";
