import type { Rows, Write } from "../engine/mod.ts";
import { randomBase62 } from "../service/mod.ts";
import type { Resource } from "./resource.ts";

/*
 * While the feed of changes is on, the commit that changes an item also says so in logs: one that operators read, and
 * that of those who see the item. The order of a log is that of the commits. A log has no content of items: its readers
 * read the item as it is then.
 */

/** The feature of a store whose changes are kept. Its number is for how many days. */
export const FEED = "changes";
/** How many letters and digits name a process. */
const TAG_LENGTH = 8;

/** What happened to an item. */
export interface ItemChange {
  readonly collection: string;
  readonly id: number;
  readonly change: "created" | "updated" | "deleted";
  /** When it was decided, in ms since the epoch. */
  readonly at: number;
}

/** An entry of operators' log: a change, with who sees the item, or a gap, after which all has to be read again. */
export type LoggedChange =
  & { readonly at: number; /** The process that wrote it. */ readonly tag: string }
  & (
    | ItemChange & Pick<Resource, "readableBy"> & {
      /** None if it belongs to none. */ readonly accountId?: string;
    }
    | { readonly gap: true }
  );

/** The log of all changes. Each commit that is in another log is in this one, too. */
export const OPERATORS_LOG: Deno.KvKey = ["changes", "operators"];
/** The log of changes that every account sees. */
export const EVERYONES_LOG: Deno.KvKey = ["changes", "everyone"];
/** The log of gaps. */
export const GAPS_LOG: Deno.KvKey = ["changes", "gaps"];

/** The log of changes that only this account sees. */
export function accountLog(accountId: string): Deno.KvKey {
  return ["changes", "account", accountId];
}

/** The other log that has an entry of operators' log; undefined if none has. */
export function otherLogOf(entry: LoggedChange): Deno.KvKey | undefined {
  if ("gap" in entry) return GAPS_LOG;
  if (entry.readableBy === "everyone") return EVERYONES_LOG;
  return entry.accountId === undefined ? undefined : accountLog(entry.accountId);
}

/** Appends the changes of a collection, as a process makes them. */
export class Feed {
  readonly #resource: Pick<Resource, "name" | "readableBy">;
  readonly #tag = newTag();

  constructor(resource: Pick<Resource, "name" | "readableBy">) {
    this.#resource = resource;
  }

  /** Appends a change if the feed is on. `ownerId` is empty if the item belongs to none. */
  append(
    { features, now: at }: Rows,
    write: Write,
    { ownerId, ...change }: Pick<ItemChange, "id" | "change"> & { readonly ownerId: string },
  ): void {
    if (!features[FEED]) return;
    const { name: collection, readableBy } = this.#resource;
    const entry: ItemChange = { collection, ...change, at };
    const owner = ownerId === "" ? {} : { accountId: ownerId };
    const logged = { ...entry, ...owner, readableBy, tag: this.#tag };
    write.append(OPERATORS_LOG, logged);
    const log = otherLogOf(logged);
    if (log) write.append(log, entry);
  }
}

/** Appends a gap: readers that have a cursor from before it have to read all again. `tag` is a new one. */
export function appendGap({ now: at }: Rows, write: Write, tag: string): void {
  write.append(OPERATORS_LOG, { gap: true, at, tag });
  write.append(GAPS_LOG, { gap: true });
}

/** A random name of a process. A row that takes the place of another, such as after a restore, has another tag or time. */
export function newTag(): string {
  return randomBase62(TAG_LENGTH);
}
