// What declarations most often extend transactions with.
import { hash } from "node:crypto";
import { decodeJson, encodeJson, type Entry } from "../engine/mod.ts";
import { ApiError, ERRORS, invalidRequest } from "../web/mod.ts";
import { stringifyJson } from "../web/schema.ts";
import type { Change, Declared, Hook, HookOf, Item } from "./hook.ts";
import { mayRead, type Resource } from "./resource.ts";
import { ownerIn } from "./rows.ts";

/** The most bytes of an id or a count as JSON. */
const ID_BYTES = 16;

/** Options of {@linkcode exists}. */
export interface ExistsOptions {
  /**
   * Whether an item that others refer to can be deleted: with `refuse`, it gets 409, such as `room_in_use`; with `keep`,
   * it can, and references stay as they are. By default, it is refused if only operators write the other collection, or
   * if only its owner reads an item. Elsewhere, accounts could keep each other's items from being deleted.
   */
  readonly onDelete?: "refuse" | "keep";
}

/**
 * A field is the id of an item of another collection, such as `exists(ROOMS, "roomId")`. A creation or change that sets
 * it to the id of no item, or of one that the account may not read, gets 400 `invalid_request`. An item without a value
 * refers to none. The deletion of an account deletes its items even if others of its items refer to them.
 */
export function exists(of: Resource, field: string, options: ExistsOptions = {}): HookOf {
  const { onDelete = of.readableBy === "owner" || of.writableBy === "operator" ? "refuse" : "keep" } =
    options;
  const { nouns: { an }, rows: { items } } = of;
  const requireItem = (item: Entry | null, { accountId = "" }: Change): void => {
    if (item && mayRead(of, ownerIn(item) ?? "", accountId)) return;
    throw invalidRequest(`The field ${field} must be the id of ${an}.`, field);
  };
  const itemOf = (id: unknown): Deno.KvKey => [...items, Number(id)];
  const errors = [ERRORS.invalid_request];
  if (onDelete === "refuse") {
    return (declared) => counted(of, field, declared, { errors, itemOf, requireItem });
  }
  return () => ({
    ...(onDelete !== "keep" && {
      fault: `must have "refuse" or "keep" as onDelete of exists(${of.name}, ${field}), not ${onDelete}`,
    }),
    ...{
      name: `exists(${of.name}, ${field}, keep)`,
      field,
      errors,
      rows: { creation: 1, change: 1, deletion: 0 },
      valueBytes: 0,
    },
    refersTo: of.name,
    apply(rows, _write, change) {
      const [, to] = valuesOf(change, field);
      if (change.by === "rebuild") return; // The item that it refers to may have been deleted.
      if (to !== undefined) requireItem(isId(to) ? rows.get(itemOf(to)) : null, change);
    },
  });
}

/** A reference that keeps the item from being deleted: a row counts the items that refer to it. */
function counted(
  of: Resource,
  field: string,
  { name, nouns: { many } }: Declared,
  { errors, itemOf, requireItem }: Required<Pick<Hook, "errors">> & {
    readonly itemOf: (id: unknown) => Deno.KvKey;
    readonly requireItem: (item: Entry | null, change: Change) => void;
  },
): Hook {
  const own = `exists(${of.name}, ${field})`;
  const { nouns: { one }, errors: { inUse, inUseCounted } } = of;
  /** The row that counts the items that refer to an id. */
  const countOf = (id: unknown): Deno.KvKey => ["own", name, own, String(id)];
  return {
    ...{ name: own, field, errors, rows: { creation: 2, change: 3, deletion: 1 }, valueBytes: ID_BYTES },
    refersTo: of.name,
    apply(rows, write, change) {
      const [from, to] = valuesOf(change, field);
      const add = (id: unknown, sum: number) => {
        if (sum > 0) write.set(countOf(id), encodeJson(sum));
        else write.delete(countOf(id));
      };
      // Got before anything refuses, so that the first run finds all rows.
      const left = isId(from) ? countIn(rows.get(countOf(from))) - 1 : 0;
      if (to !== undefined) {
        const count = isId(to) ? countIn(rows.get(countOf(to))) : 0;
        // While others refer to an item, it is there. Whether the account may read it follows from its own row alone.
        const isKnown = count > 0 && of.readableBy === "everyone";
        if (!isKnown) requireItem(isId(to) ? rows.get(itemOf(to)) : null, change);
        add(to, count + 1);
      }
      if (isId(from)) add(from, left);
    },
    reverse: {
      of: of.name,
      hook: {
        ...{
          name: own,
          deletionErrors: [inUse],
          rows: { creation: 0, change: 0, deletion: 1 },
          valueBytes: 0,
        },
        apply(rows, _write, { id, after, by }) {
          if (after !== undefined || by === "removal") return;
          const references = countIn(rows.get(countOf(id)));
          if (references === 0) return;
          const message = `The ${one} is in use: ${many} refer to it.`;
          throw by === "operator"
            ? new ApiError(inUseCounted, message, {}, { references })
            : new ApiError(inUse, message);
        },
      },
    },
  };
}

/** Options of {@linkcode unique}. */
export interface UniqueOptions {
  /** Among whose items. By default, everyone's, except where only its owner reads an item: there it must be said. */
  readonly among?: "owner" | "everyone";
}

/**
 * No two items of the collection, or of its owner, have the same value in a field, such as `unique("email")`. A creation
 * or change to a value that another item has gets 409, such as `user_exists`. Any number of items can have no value.
 */
export function unique(field: string, { among }: UniqueOptions = {}): HookOf {
  return ({ name, readableBy, nouns: { one }, errors: { exists } }) => {
    const own = among === "owner" ? `unique(${field}, owner)` : `unique(${field})`;
    /** The row with the id of the item that has a value. A hash has room in a key, whatever the value. */
    const rowOf = (value: unknown, { accountId = "" }: Change): Deno.KvKey => [
      ...["own", name, own],
      ...among === "owner" ? [accountId] : [],
      hash("sha256", stringifyJson(value)),
    ];
    return {
      ...{
        name: own,
        field,
        errors: [exists],
        rows: { creation: 1, change: 2, deletion: 1 },
        valueBytes: ID_BYTES,
      },
      ...(among !== undefined && !["owner", "everyone"].includes(among) && {
        fault: `must have "owner" or "everyone" as among of unique(${field}), not ${among}`,
      }),
      ...(readableBy === "owner" && among === undefined && {
        fault:
          `must say among whose items ${field} is unique: among: "owner", or among: "everyone", which keeps what is ` +
          "stored, but tells an account which values others have",
      }),
      apply(rows, write, change) {
        const [from, to] = valuesOf(change, field);
        if (to !== undefined) {
          if (rows.get(rowOf(to, change)) !== null) {
            throw new ApiError(exists, `The field ${field} must be unique: another ${one} has this value.`);
          }
          write.set(rowOf(to, change), encodeJson(change.id));
        }
        if (from !== undefined) write.delete(rowOf(from, change));
      },
    };
  };
}

/** The value of a field before and after a change; undefined if there is none, or if it is the same. */
function valuesOf({ before, after }: Change, field: string): readonly [from: unknown, to: unknown] {
  const valueIn = (item: Item | undefined) => item?.[field] ?? undefined;
  const [from, to] = [valueIn(before), valueIn(after)];
  const isSame = from !== undefined && to !== undefined && stringifyJson(from) === stringifyJson(to);
  return isSame ? [undefined, undefined] : [from, to];
}

/** Whether an item can have this id. */
function isId(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0;
}

function countIn(row: Entry | null): number {
  return row === null ? 0 : decodeJson<number>(row);
}
