import {
  Invalid,
  isJsonObject,
  isValid,
  type JsonObject,
  type Members,
  type Schema,
  stringifyJson,
} from "../web/schema.ts";
import type { Item } from "./hook.ts";
import type { Resource } from "./resource.ts";

/** A change to an item, as a request has it. */
export interface Patch {
  /** The fields to change, with valid values. */
  readonly change: JsonObject;
  /** Values that only earlier releases accepted. */
  readonly outdated: JsonObject;
  /** What is wrong with those. */
  readonly fault?: Invalid;
}

/**
 * The schema of a change that may also have values that only earlier releases accepted, because clients send back what
 * they read. `changes` are its fields. See {@linkcode patched}.
 */
export function patchOf(patch: Schema<JsonObject>, changes: Members): Schema<Patch> {
  const isOutdated = ([name, value]: [string, unknown]) => {
    const schema = Object.hasOwn(changes, name) ? changes[name] : undefined;
    return schema !== undefined && schema.accepts(value) && !isValid(schema, value);
  };
  return {
    ...patch,
    accepts: (value): value is never => patch.accepts(value),
    parse(value, subject, isStrict) {
      try {
        return { change: patch.parse(value, subject, isStrict), outdated: {} };
      } catch (fault) {
        if (!(fault instanceof Invalid) || !isJsonObject(value)) throw fault;
        const { outdated = [], others = [] } = Object.groupBy(
          Object.entries(value),
          (member) => isOutdated(member) ? "outdated" : "others",
        );
        const change = validOr(fault, () => patch.parse(Object.fromEntries(others), subject, isStrict));
        return { change, outdated: Object.fromEntries(outdated), fault };
      }
    },
  };
}

/** The result of `parse`. @throws {Invalid} `fault` if it throws Invalid. */
function validOr<Value>(fault: Invalid, parse: () => Value): Value {
  try {
    return parse();
  } catch (error) {
    throw error instanceof Invalid ? fault : error;
  }
}

/**
 * An item with a change.
 *
 * @throws {Invalid} if the change has an outdated value that is not the item's own.
 */
export function patched(resource: Resource, item: Item, { change, outdated, fault }: Patch): Item {
  const isOwn = Object.entries(outdated).every(([name, value]) =>
    stringifyJson(value) === stringifyJson(item[name])
  );
  if (fault && !isOwn) throw fault;
  return resource.changed(item, change);
}
