// Fields that clients never set.
import {
  type Defaulted,
  Invalid,
  nullable,
  type Optional,
  optional,
  type Schema,
  timestamp,
} from "../web/schema.ts";

/** A field that the service sets: code and operators, or its clock. */
interface ServiceField {
  readonly setBy: "service" | "creation" | "change";
}

/**
 * Marks a field that clients do not set, such as a sum. Responses have it. In a PATCH it is ignored, and a creation with it
 * is refused. Operators and `Items.in()` set it.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 * import { int64, optional } from "../web/schema.ts";
 *
 * const FIELDS = { totalCents: int64(), paidCents: ofService(optional(int64(), 0)), createdAt: createdAt() };
 * assertEquals(Object.values(FIELDS).map(setterOf), [undefined, "service", "creation"]);
 * ```
 */
export function ofService<Of extends Optional<unknown> | Defaulted<unknown>>(schema: Of): Of & ServiceField {
  return { ...schema, setBy: "service" };
}

/** The time of an item's creation. It is null for items that were added before the field was declared. */
export function createdAt(
  description: string = "When it was added",
): Defaulted<string | null> & ServiceField {
  return { ...optional(nullable(timestamp({ description })), null), setBy: "creation" };
}

/** The time of an item's last change, or of its creation. It is null until an older item is changed. */
export function updatedAt(
  description: string = "When it was last changed",
): Defaulted<string | null> & ServiceField {
  return { ...optional(nullable(timestamp({ description })), null), setBy: "change" };
}

/** Who sets a field; undefined if clients do. */
export function setterOf(schema: Schema): ServiceField["setBy"] | undefined {
  return isServiceField(schema) ? schema.setBy : undefined;
}

/** A field that a creation must not have. Documents do not show it. */
export function refused(schema: Schema): Optional<never> {
  return {
    ...schema,
    parse(value, subject) {
      if (value === undefined) return undefined;
      throw new Invalid(`${subject} must be left out, because the service sets it`);
    },
    accepts: (value): value is never => value === undefined,
    isOptional: true,
    isHidden: true,
  };
}

function isServiceField(schema: Schema): schema is Schema & ServiceField {
  return "setBy" in schema;
}
