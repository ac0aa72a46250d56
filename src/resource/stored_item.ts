import { CorruptRow, decodeText, type Entry } from "../engine/mod.ts";
import { isJsonObject, type JsonObject, parseStoredJson } from "../web/schema.ts";
import type { Item } from "./hook.ts";
import { type Resource, withDefaults } from "./resource.ts";
import { ownerIn } from "./rows.ts";

/** An item and the account that it belongs to. */
export interface Owned<Value extends Item = Item> {
  readonly item: Value;
  /** Empty if it belongs to none. */
  readonly ownerId: string;
  /** Fields that a later release has stored. They are kept unchanged. */
  readonly rest?: JsonObject;
}

/** A row of an item as it is stored. */
export interface StoredItem {
  /** What clients see. */
  readonly json: string;
  readonly members: JsonObject;
  readonly ownerId: string;
}

/** The declaration of a collection cannot read an item. */
export class UnreadableItem extends CorruptRow {
  readonly id: number;
  /** The account that it belongs to; undefined if that cannot be read, either. */
  readonly ownerId: string | undefined;
  /** Whether no declaration could read it. */
  readonly isDamaged: boolean;
  /** One line for the operator: why, and what to do. */
  readonly advice: string;

  constructor(entry: Entry, fault: string, remedy: string, isDamaged: boolean = false) {
    super(fault);
    this.id = Number(entry.key.at(-1));
    this.ownerId = ownerIn(entry);
    this.isDamaged = isDamaged;
    this.advice = `${fault}, so this release cannot read the item. ${remedy}`;
  }
}

/**
 * Decodes an item and its owner. Its fields may exceed today's bounds. A field that was added later has its default.
 *
 * @throws {UnreadableItem}
 */
export function decodeItem<Value extends Item>(resource: Resource<Value>, entry: Entry): Owned<Value> {
  const { members, ownerId } = storedItemIn(resource, entry);
  const known = resource.schemas.members;
  const item: JsonObject = { id: members.id, ...withDefaults(resource.fields, members) };
  if (!resource.schemas.item.accepts(item)) {
    const field = Object.keys(known).find((name) => !known[name]?.accepts(item[name])) ?? "";
    throw misfit(resource, entry, field, item[field] === undefined);
  }
  const rest = Object.entries(members).filter(([name]) => !Object.hasOwn(known, name));
  return { item, ownerId, ...(rest.length > 0 && { rest: Object.fromEntries(rest) }) };
}

/**
 * Splits a row into its two lines: the JSON for clients, and the owner. The fields may not fit the declaration.
 *
 * @throws {UnreadableItem} if it is no item, or that of another row.
 */
export function storedItemIn({ name, nouns }: Resource, entry: Entry): StoredItem {
  const id = entry.key.at(-1);
  try {
    const [json = "", ownerId = ""] = decodeText(entry).split("\n");
    const members = parseStoredJson(json);
    if (isJsonObject(members) && members.id === id) return { json, members, ownerId };
  } catch {
    // Neither text nor JSON.
  }
  const remedy = "No declaration can read it: delete it.";
  throw new UnreadableItem(entry, `Item ${String(id)} of ${name} is not ${nouns.an}`, remedy, true);
}

function misfit({ name }: Resource, entry: Entry, field: string, isMissing: boolean): UnreadableItem {
  const [fault, remedy] = isMissing ? ["is missing", "Make the field optional, or give it a default."] : [
    "has a value that is not declared",
    "Keep the type and all values of the field, or declare a new field with another name.",
  ];
  return new UnreadableItem(
    entry,
    `In item ${String(entry.key.at(-1))} of ${name}, the field ${field} ${fault}`,
    remedy,
  );
}
