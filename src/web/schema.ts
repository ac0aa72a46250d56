/**
 * Schemas of JSON and of texts: each parses a value, names every fault, and describes itself in JSON Schema.
 *
 * @example
 * ```ts
 * import { assertEquals, assertThrows } from "@std/assert";
 *
 * const toy = object({ name: text({ max: 20 }), price: optional(integer(0, 99), 1) });
 * assertEquals(toy.parse({ name: "Ball" }, ""), { name: "Ball", price: 1 });
 * assertThrows(() => toy.parse({ price: 100 }, ""), Invalid, "name is required");
 * ```
 *
 * @module
 */
export { isJsonObject, type JsonObject, parseJson, parseStoredJson, stringifyJson } from "./json.ts";
export {
  faultsIn,
  ignored,
  isRemovable,
  isRequired,
  isValid,
  list,
  mergePatch,
  named,
  nullable,
  object,
  optional,
  output,
  partial,
  resolved,
  withoutDefault,
} from "./objects.ts";
export {
  BIDI_CONTROLS,
  boolean,
  date,
  extensibleEnum,
  int64,
  integer,
  nameText,
  oneOf,
  text,
  timestamp,
} from "./scalars.ts";
export {
  type Defaulted,
  Invalid,
  type JsonSchema,
  type Members,
  type Optional,
  type Parsed,
  type ParsedMembers,
  type Schema,
  type SentMembers,
} from "./schema_types.ts";
export { shownName } from "./unknown_names.ts";
