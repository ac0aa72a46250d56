import { DAY } from "../base/mod.ts";
import { KV_DEADLINE, MAX_MUTATIONS, nameOf, type Store } from "../engine/mod.ts";
import { ApiError, type ErrorKind, invalidRequest } from "../web/mod.ts";
import {
  accountLog,
  EVERYONES_LOG,
  FEED,
  GAPS_LOG,
  type ItemChange,
  type LoggedChange,
  OPERATORS_LOG,
  otherLogOf,
  type Resource,
} from "../resource/mod.ts";
import { type FeedCursor, textOfCursor } from "./feed_cursor.ts";
import { FeedWatch } from "./feed_watch.ts";
import { type LogRow, mergeLogs, rowOf, rowsAfter } from "./logs.ts";

/** The feed is off. */
export const CHANGES_OFF: ErrorKind = {
  code: "changes_off",
  status: 409,
  means: "The feed of changes is off, or was switched on just now.",
  todo: "Ask the operator of the service to switch it on.",
};

const LOST = {
  status: 410,
  todo: "List everything again, and go on from `cursor`.",
  texts: { cursor: "With `cursor_expired` and `changes_gap`: the cursor of now" },
} as const;
/** The store does not have the changes after a cursor any more. */
export const CURSOR_EXPIRED: ErrorKind = {
  ...LOST,
  code: "cursor_expired",
  means: "The changes after the cursor are not kept any more, or the store was restored from a backup.",
};
/** The feed does not have all changes after a cursor. */
export const CHANGES_GAP: ErrorKind = {
  ...LOST,
  code: "changes_gap",
  means:
    "After the cursor, the feed was off for some time, the store was restored from a backup, or who may read a collection has changed.",
};

/** A change as its readers see it. */
export interface SeenChange extends ItemChange {
  /** The account that the item belongs to, for operators. */
  readonly accountId?: string;
}

/** Which changes to read, and for whom. */
export interface ChangeQuery {
  /** Empty for operators. */
  readonly accountId: string;
  /** The collections that the reader is restricted to; undefined if it is not. */
  readonly collections?: readonly string[] | undefined;
  readonly after?: FeedCursor | undefined;
  readonly limit: number;
  /** In ms since the epoch. */
  readonly now: number;
}

/** Some changes. */
export interface ChangePage {
  readonly changes: readonly SeenChange[];
  /** Where the next page begins. */
  readonly cursor: FeedCursor;
  /** Whether there are more now. */
  readonly more: boolean;
  /** For how many days changes are kept. */
  readonly days: number;
}

type OperatorsRow = LogRow<LoggedChange>;

/** Maximum number of rows that a request reads of all logs, and at a time of one. */
const MAX_READ = 1_000;
const STEP = 100;
/** Maximum number of rows that are read to find the newest one that is not young. */
const MAX_YOUNG = 10_000;
/** Number of rows that a sweep reads. */
const SWEPT = 500;

/** Options of a {@linkcode ChangeStore}. */
export interface ChangeStoreOptions {
  readonly resources: readonly Resource[];
  /** Maximum age of cached items, in ms; by default 0. */
  readonly maxStalenessMs?: number | undefined;
}

/** The feed of changes. Methods throw StoreUnavailable if KV fails. */
export class ChangeStore {
  readonly #store: Store;
  readonly #maxStaleness: number;
  readonly #resources: ReadonlyMap<string, Resource>;
  readonly #watch: FeedWatch;

  constructor(store: Store, { resources, maxStalenessMs = 0 }: ChangeStoreOptions) {
    this.#store = store;
    this.#watch = new FeedWatch(store);
    this.#maxStaleness = maxStalenessMs;
    this.#resources = new Map(resources.map((resource) => [resource.name, resource]));
  }

  /**
   * The changes after a cursor, in the order of their commits: at least `limit`, if there are that many, and all of
   * the last commit. Without `after`, there are none.
   *
   * @throws {ApiError} `changes_off`, `cursor_expired` or `changes_gap`; `invalid_request` if the cursor is another's.
   */
  async read(query: ChangeQuery): Promise<ChangePage> {
    const { accountId, after } = query;
    if (after === undefined) return await this.#start(query);
    if (after.accountId !== accountId) {
      const fault = "must be a cursor from this feed, and not that of another account or of operators";
      throw invalidRequest(`The query parameter after ${fault}.`, "after");
    }
    const [horizon] = await this.#rows(1, { reverse: true });
    const [{ changes, end, more }, gaps] = await Promise.all([
      this.#collect(query, after.stamp, horizon?.stamp ?? ""),
      this.#store.list(rowsAfter(GAPS_LOG, after.stamp), 1),
    ]);
    // Read last: as long as the row is there, no later one has been swept, nor a gap.
    const [{ [FEED]: days = 0 }, [first = null, last = null]] = await Promise.all([
      this.#store.features(),
      this.#store.getMany([after.stamp, end].map((stamp) => [...OPERATORS_LOG, stamp])),
    ]);
    if (days === 0) throw isOff();
    const isKept = first !== null && last !== null && cursorAt(rowOf(first), accountId).mark === after.mark;
    if (isKept && gaps.length === 0) return { changes, cursor: cursorAt(rowOf(last), accountId), more, days };
    const lost = isKept ? CHANGES_GAP : CURSOR_EXPIRED;
    const { cursor } = await this.#start(query);
    throw new ApiError(lost, lost.means, {}, { cursor: textOfCursor(cursor) });
  }

  /**
   * Resolves to whether a commit after a cursor has changed what its account may see, once there is one, or to false after
   * `ms`, or if the signal aborts.
   */
  hasChanged({ stamp, accountId }: FeedCursor, ms: number, signal: AbortSignal): Promise<boolean> {
    return this.#watch.hasAppended([GAPS_LOG, EVERYONES_LOG, accountLog(accountId)], stamp, { ms, signal });
  }

  /** No changes, and the cursor of now. After a list of items that is read later, no change before it is missing. */
  async #start({ accountId, now }: ChangeQuery): Promise<ChangePage> {
    const [{ [FEED]: days = 0 }, row] = await Promise.all([this.#store.features(), this.#newestShown(now)]);
    if (days === 0 || row === undefined) throw isOff();
    return { changes: [], cursor: cursorAt(row, accountId), more: false, days };
  }

  /**
   * The newest row that is not young or, if too many are, the oldest one that is kept; undefined if that is young, or if
   * there is none.
   */
  async #newestShown(now: number): Promise<OperatorsRow | undefined> {
    const size = this.#maxStaleness === 0 ? 1 : MAX_READ;
    let rows: readonly OperatorsRow[] = [];
    for (let left = MAX_YOUNG; left > 0; left -= size) {
      rows = await this.#rows(size, { reverse: true, before: rows.at(-1)?.stamp });
      const row = rows.find(({ at }) => !this.#isYoung(at, now));
      if (row || rows.length < size) return row;
    }
    const [oldest] = await this.#rows(1);
    return oldest && this.#isYoung(oldest.at, now) ? undefined : oldest;
  }

  /** Reads changes after a stamp, and says up to which one. */
  async #collect(
    query: ChangeQuery,
    after: string,
    horizon: string,
  ): Promise<Pick<ChangePage, "changes" | "more"> & { readonly end: string }> {
    const sources = this.#sourcesOf(query);
    const changes: SeenChange[] = [];
    let end = after;
    for (let left = MAX_READ; left > 0 && end < horizon; left -= STEP * sources.length) {
      const logs = await Promise.all(sources.map(async ({ log, sees }) => {
        const rows = await this.#store.list(rowsAfter(log, end), STEP);
        return rows.map(rowOf<SeenChange>).map((row) => ({ ...row, entries: row.entries.filter(sees) }));
      }));
      const known = mergeLogs(logs, STEP, horizon);
      for (const { stamp, at, entries } of known.commits) {
        if (this.#isYoung(at, query.now)) return { changes, end, more: false };
        changes.push(...entries);
        end = stamp;
        if (changes.length >= query.limit) return { changes, end, more: end < horizon };
      }
      end = known.end;
    }
    return { changes, end, more: end < horizon };
  }

  /** The logs that a reader reads, and what it sees of each. */
  #sourcesOf({ accountId, collections }: ChangeQuery) {
    const readersOf = ({ collection }: SeenChange) =>
      collections?.includes(collection) === false ? undefined : this.#resources.get(collection)?.readableBy;
    const isDeclared = (change: SeenChange) => readersOf(change) !== undefined;
    const isForEveryone = (change: SeenChange) => readersOf(change) === "everyone";
    if (accountId === "") return [{ log: OPERATORS_LOG, sees: isDeclared }];
    return [
      { log: EVERYONES_LOG, sees: isForEveryone },
      { log: accountLog(accountId), sees: isDeclared },
    ];
  }

  /**
   * Whether a process may still show items from before a change, whose commit can take until the deadline. If a clock is
   * more than a day ahead, its time means nothing.
   */
  #isYoung(at: number, now: number): boolean {
    return this.#maxStaleness > 0 && at > now - this.#maxStaleness - KV_DEADLINE && !isAhead(at, now);
  }

  /** When the oldest change that is kept was made, in ms since the epoch; undefined if none is. */
  async oldestAt(): Promise<number | undefined> {
    const [oldest] = await this.#rows(1);
    return oldest?.at;
  }

  /**
   * Removes some of the rows whose successor is older than the days for which changes are kept, from the oldest on. The
   * newest stays, so that its readers go on. Resolves to true if there may be more.
   */
  async sweep(now: number): Promise<boolean> {
    const { [FEED]: days = 0 } = await this.#store.features();
    const end = days === 0 ? Infinity : now - days * DAY;
    const rows = await this.#rows(SWEPT);
    const last = rows.at(-1);
    let isOld = last !== undefined && isAhead(last.at, now) &&
      await this.#isOldAfter(last.stamp, { end, now });
    const old = rows.toReversed().map(({ at }) => isOld = at < end || (isAhead(at, now) && isOld)).reverse();
    const keys: Deno.KvKey[] = [];
    for (const [index, row] of rows.entries()) {
      const own = keysOf(row);
      if (!old[index + 1] || keys.length + own.length > MAX_MUTATIONS) break;
      keys.push(...own);
    }
    await this.#store.remove(keys);
    return keys.length > 0;
  }

  /** Whether the first row after a stamp whose time means something is from before `end`. */
  async #isOldAfter(
    stamp: string,
    { end, now }: { readonly end: number; readonly now: number },
  ): Promise<boolean> {
    for await (const page of this.#store.pages([...OPERATORS_LOG, stamp, ""], [...OPERATORS_LOG, "~"])) {
      const known = page.map(rowOf<LoggedChange>).find(({ at }) => !isAhead(at, now));
      if (known) return known.at < end;
    }
    return false;
  }

  /** The first rows of operators' log or, in reverse, the last ones; only those before a stamp if there is one. */
  async #rows(
    limit: number,
    { reverse = false, before }: { readonly reverse?: boolean; readonly before?: string | undefined } = {},
  ): Promise<readonly OperatorsRow[]> {
    const end = before === undefined ? {} : { end: [...OPERATORS_LOG, before] };
    return (await this.#store.list({ prefix: OPERATORS_LOG, ...end }, limit, { reverse }))
      .map(rowOf<LoggedChange>);
  }
}

function isOff(): ApiError {
  return new ApiError(CHANGES_OFF, `The feed of changes is off. ${CHANGES_OFF.todo}`);
}

/** Whether a time is more than a day ahead, because the clock of a process was wrong. */
function isAhead(at: number, now: number): boolean {
  return at > now + DAY;
}

/** An account's cursor at a row of operators' log. */
function cursorAt({ stamp, at, entries }: OperatorsRow, accountId: string): FeedCursor {
  return { stamp, mark: `${entries.at(-1)?.tag ?? ""}-${at}`, accountId };
}

/** The keys of a row of operators' log, and of those that other logs have of its commit. */
function keysOf({ stamp, entries }: OperatorsRow): readonly Deno.KvKey[] {
  const logs = [OPERATORS_LOG, ...entries.map(otherLogOf).filter((log) => log !== undefined)];
  return [...new Map(logs.map((log) => [nameOf(log), [...log, stamp]])).values()];
}
