// What declarations most often extend transactions with.
import { hash } from "node:crypto";
import { decodeJson, encodeJson, type Entry } from "../engine/mod.ts";
import { ApiError, ERRORS, invalidRequest } from "../web/mod.ts";
import { stringifyJson } from "../web/schema.ts";
import type { Change, HookOf, Item } from "./hook.ts";
import { mayRead, type Resource } from "./resource.ts";
import { ownerIn } from "./rows.ts";

/**
 * A field is the id of an item of another collection, such as `exists(ROOMS, "roomId")`. A creation or change that sets
 * it to the id of no item, or of one that the account may not read, gets 400 `invalid_request`. While an item is
 * referred to, its deletion gets 409, such as `room_in_use`. An item without a value refers to none. It reads two rows
 * for a creation, and three for a change of the field.
 */
export function exists(of: Resource, field: string): HookOf {
  const { nouns: { an, one }, rows, errors: { inUse } } = of;
  return ({ name, nouns: { many } }) => {
    const own = `exists(${of.name}, ${field})`;
    /** The row that counts the items that refer to an id. */
    const countOf = (id: unknown): Deno.KvKey => ["own", name, own, String(id)];
    const itemOf = (id: unknown): Deno.KvKey => [...rows.items, Number(id)];
    return {
      name: own,
      field,
      errors: [ERRORS.invalid_request],
      keys(change) {
        const [from, to] = valuesOf(change, field);
        return [...isId(to) ? [itemOf(to), countOf(to)] : [], ...isId(from) ? [countOf(from)] : []];
      },
      apply(rows, write, change) {
        const [from, to] = valuesOf(change, field);
        const add = (id: unknown, count: number) => {
          const sum = countIn(rows.get(countOf(id))) + count;
          if (sum > 0) write.set(countOf(id), encodeJson(sum));
          else write.delete(countOf(id));
        };
        if (to !== undefined) {
          const item = isId(to) ? rows.get(itemOf(to)) : null;
          if (item === null || !mayRead(of, ownerIn(item) ?? "", change.accountId ?? "")) {
            throw invalidRequest(`The field ${field} must be the id of ${an}.`, field);
          }
          add(to, 1);
        }
        if (isId(from)) add(from, -1);
      },
      reverse: {
        of: of.name,
        hook: {
          name: own,
          errors: [inUse],
          keys: ({ id, after }) => after === undefined ? [countOf(id)] : [],
          apply(rows, _write, { id, after }) {
            if (after !== undefined || countIn(rows.get(countOf(id))) === 0) return;
            throw new ApiError(inUse, `The ${one} is in use: ${many} refer to it.`);
          },
        },
      },
    };
  };
}

/**
 * No two items of the collection have the same value in a field, such as `unique("email")`, whoever they belong to. A
 * creation or change to a value that another item has gets 409, such as `user_exists`. Any number of items can have no
 * value. It reads one row for a creation, and two for a change of the field.
 */
export function unique(field: string): HookOf {
  return ({ name, nouns: { one }, errors: { exists } }) => {
    const own = `unique(${field})`;
    /** The row with the id of the item that has a value. A hash has room in a key, whatever the value. */
    const rowOf = (value: unknown): Deno.KvKey => ["own", name, own, hash("sha256", stringifyJson(value))];
    return {
      name: own,
      field,
      errors: [exists],
      keys: (change) => valuesOf(change, field).flatMap((value) => value === undefined ? [] : [rowOf(value)]),
      apply(rows, write, change) {
        const [from, to] = valuesOf(change, field);
        if (to !== undefined) {
          if (rows.get(rowOf(to)) !== null) {
            throw new ApiError(exists, `The field ${field} must be unique: another ${one} has this value.`);
          }
          write.set(rowOf(to), encodeJson(change.id));
        }
        if (from !== undefined) write.delete(rowOf(from));
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
