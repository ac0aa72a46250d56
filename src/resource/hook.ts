import type { Rows, Write } from "../engine/mod.ts";
import type { ErrorKind } from "../web/mod.ts";
import type { JsonObject } from "../web/schema.ts";

/** An item of a collection: its id, and the fields that clients set. */
export type Item = JsonObject & { readonly id: number };

/**
 * A rule that items have to keep, across fields or over time.
 *
 * @example
 * ```ts ignore
 * // Across fields. A timestamp is stored as it was sent, with any offset, so compare times and not texts:
 * check: ({ item: { startsAt, endsAt } }) =>
 *   Date.parse(startsAt) < Date.parse(endsAt) ? undefined : "The field endsAt must be after startsAt."
 * // A transition:
 * check: ({ item, before }) =>
 *   before?.state === "sold" && item.state !== "sold" ? "The field state must stay sold." : undefined
 * ```
 */
export interface Rule<Value extends Item = Item> {
  /** By default `invalid_request`. */
  readonly error?: ErrorKind;
  /**
   * Returns what is wrong, naming the field, or undefined. The first field that it names is the error's `field`. It is
   * called in the transaction of every creation, and of
   * every change that changes something, also by operators. A change is refused only if the item kept the rule before,
   * so items that an earlier release stored stay changeable. `now` is in ms since the epoch.
   */
  check(
    state: { readonly item: Value; readonly before?: Value | undefined; readonly now: number },
  ): string | undefined;
}

/** The creation, change or deletion of an item. */
export interface Change<Value extends Item = Item> {
  readonly id: number;
  /** The item before; undefined if it is created. */
  readonly before?: Value | undefined;
  /** The item after; undefined if it is deleted. */
  readonly after?: Value | undefined;
  /** The account that the item belongs to, whoever changes it; undefined if it belongs to none. */
  readonly accountId?: string | undefined;
  /** When the request arrived, in ms since the epoch. */
  readonly now: number;
}

/**
 * What else happens in the transactions of a collection. Its rows have keys that begin with `"own"` and the name of the
 * collection, such as `["own", "bookings", "slot", 7, "2027-01-11"]`.
 *
 * @example No two confirmed bookings of a room are on the same day:
 * ```ts ignore
 * const dayOf = (time: string) => new Date(time).toISOString().slice(0, 10); // UTC
 * const slotsOf = (booking?: Booking) =>
 *   booking?.state === "confirmed"
 *     ? [["own", "bookings", "slot", booking.roomId, dayOf(booking.startsAt)]]
 *     : [];
 *
 * const slot: Hook<Booking> = {
 *   name: "slot",
 *   errors: [SLOT_TAKEN],
 *   keys: ({ before, after }) => [...slotsOf(before), ...slotsOf(after)],
 *   apply(rows, write, { id, before, after }) {
 *     for (const key of slotsOf(before)) write.delete(key);
 *     for (const key of slotsOf(after)) {
 *       const row = rows.get(key);
 *       if (row && decodeJson<number>(row) !== id) throw new ApiError(SLOT_TAKEN, "The room is taken that day.");
 *       write.set(key, encodeJson(id));
 *     }
 *   },
 * };
 * ```
 */
export interface Hook<Value extends Item = Item> {
  /** Unique in its declaration. The store remembers it. */
  readonly name: string;
  /** The errors that `apply` throws, for documents. */
  readonly errors?: readonly ErrorKind[];
  /**
   * The rows to read, any of the store, given a change: always the same for the same change. All entries of a
   * declaration together can have five for one change of an item. A bigint becomes a string.
   */
  keys(change: Change<Value>): readonly Deno.KvKey[];
  /**
   * Decides on these rows: writes rows of its own, or refuses the change with an ApiError. It can run several times, and
   * only its last run counts.
   */
  apply(rows: Rows, write: Pick<Write, "set" | "delete">, change: Change<Value>): undefined;
  /** The field that it is about. */
  readonly field?: string;
  /** What it adds to the collection with the name `of`: there, `errors` are those of deletions. */
  readonly reverse?: { readonly of: string; readonly hook: Hook };
}

/** A hook of the collection that is being declared. */
export type HookOf = (declared: Declared) => Hook;

/** What hooks are told of a declaration. */
export interface Declared {
  readonly name: string;
  /** The nouns in texts: one item with its article and without, and several. */
  readonly nouns: { readonly an: string; readonly one: string; readonly many: string };
  readonly errors: {
    readonly notFound: ErrorKind;
    readonly notYours: ErrorKind;
    /** Another item has a value that is unique. */
    readonly exists: ErrorKind;
    /** Items of another collection refer to the item. */
    readonly inUse: ErrorKind;
  };
}
