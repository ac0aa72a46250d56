import type { Rows, Write } from "../engine/mod.ts";
import type { ErrorKind } from "../web/mod.ts";
import type { JsonObject } from "../web/schema.ts";
import type { Acting } from "../service/mod.ts";

/** An item of a collection: its id, and the fields that clients set. */
export type Item = JsonObject & { readonly id: number };

/**
 * A rule that items have to keep, across fields or over time. It is asked in the transaction of every creation and of
 * every change that changes something, whoever acts, except that the deletion of an account and a rebuild ask none. What
 * it throws or returns, other than a text or undefined, is a fault of the declaration.
 *
 * @example
 * ```ts ignore
 * // Across fields. A timestamp is stored as it was sent, with any offset, so compare times and not texts:
 * check: ({ item: { startsAt, endsAt } }) =>
 *   Date.parse(startsAt) < Date.parse(endsAt) ? undefined : "The field endsAt must be after startsAt."
 * // A transition, from an initial state:
 * check: ({ item, before }) =>
 *   before === undefined && item.state !== "draft" ? "The field state must be draft at first." : undefined
 * // What only the service and operators may do:
 * checkDeletion: ({ before, by }) =>
 *   by === "account" && before.state !== "draft" ? "Only drafts can be deleted." : undefined
 * ```
 */
export interface Rule<Value extends Item = Item> {
  /** The error of a creation or a change that breaks it; by default `invalid_request`. */
  readonly error?: ErrorKind;
  /** Further errors that `check` throws as ApiErrors, for documents. */
  readonly errors?: readonly ErrorKind[];
  /** The errors of deletions: the first is that of the text that `checkDeletion` returns; by default as for `error`. */
  readonly deletionErrors?: readonly ErrorKind[];
  /**
   * Returns what is wrong, naming the field, or undefined. The first field that it names is the error's `field`. A
   * change of an item that breaks the rule already is not refused: then the rule is asked about the stored item, and `item`
   * is `before`. `now` is in ms since the epoch.
   */
  check?(
    state: Pick<Change, "by" | "now"> & { readonly item: Value; readonly before?: Value | undefined },
  ): string | undefined;
  /** Returns why an item must not be deleted, or undefined. */
  checkDeletion?(state: Pick<Change, "by" | "now"> & { readonly before: Value }): string | undefined;
}

/** The creation, change or deletion of an item. */
export interface Change<Value extends Item = Item> extends Pick<Acting, "by" | "now"> {
  readonly id: number;
  /** The item before; undefined if it is created. */
  readonly before?: Value | undefined;
  /** The item after; undefined if it is deleted. */
  readonly after?: Value | undefined;
  /** The account that the item belongs to, whoever changes it; undefined if it belongs to none. */
  readonly accountId?: string | undefined;
}

/** The most rows that a hook gets or writes for a creation, a change and a deletion. */
export interface RowCounts {
  readonly creation: number;
  readonly change: number;
  readonly deletion: number;
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
 *   rows: 2,
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
  /** The errors that `apply` throws for creations and changes, for documents. */
  readonly errors?: readonly ErrorKind[];
  /** Those that it throws for deletions. */
  readonly deletionErrors?: readonly ErrorKind[];
  /** The most rows that it gets or writes for one change of an item; by default 2. */
  readonly rows?: number | RowCounts;
  /** The most bytes of a value that it writes; by default, and at most, 65,536. */
  readonly valueBytes?: number;
  /**
   * Decides on the rows that it gets, any of the store: writes rows of its own, or refuses the change with an ApiError.
   * A row that has not been read yet is null, and then `apply` is called again. Only its last run counts, so it must
   * have no other effect. It returns nothing. It cannot refuse the deletion of an account (`by: "removal"`): it only
   * tidies its rows then. In a key, a bigint becomes a string.
   */
  apply(rows: Pick<Rows, "get">, write: Pick<Write, "set" | "delete">, change: Change<Value>): undefined;
  /** Hooks of release 1.1.0 named their rows in advance. A service with such a hook does not start. */
  keys?(change: Change<Value>): readonly Deno.KvKey[];
  /** The field that it is about. */
  readonly field?: string;
  /** The collection that its field refers to. */
  readonly refersTo?: string;
  /** Why the service must not start with it. */
  readonly fault?: string;
  /** What it adds to the collection with the name `of`. */
  readonly reverse?: { readonly of: string; readonly hook: Hook };
}

/** A hook of the collection that is being declared. */
export type HookOf = (declared: Declared) => Hook;

/** What hooks are told of a declaration. */
export interface Declared {
  readonly name: string;
  /** Who sees an item: every account, or only the one that it belongs to. */
  readonly readableBy: "everyone" | "owner";
  /** The nouns in texts: one item with its article and without, and several. */
  readonly nouns: { readonly an: string; readonly one: string; readonly many: string };
  readonly errors: {
    readonly notFound: ErrorKind;
    readonly notYours: ErrorKind;
    /** Another item has a value that is unique. */
    readonly exists: ErrorKind;
    /** Items of another collection refer to the item. */
    readonly inUse: ErrorKind;
    /** The same for operators, who learn how many. */
    readonly inUseCounted: ErrorKind;
  };
}
