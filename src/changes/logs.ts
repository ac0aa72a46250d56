// Rows of logs, and several logs as one: pure functions.
import { decodeJson, type Entry } from "../engine/mod.ts";

/** A row of a log. */
export interface LogRow<Logged> {
  /** The versionstamp of the commit that appended it. */
  readonly stamp: string;
  /** When that was decided, in ms since the epoch. */
  readonly at: number;
  readonly entries: readonly Logged[];
}

/** The rows of a log after a stamp. */
export function rowsAfter(log: Deno.KvKey, stamp: string): Deno.KvListSelector {
  return { prefix: log, start: [...log, stamp, ""] };
}

/** Decodes a row. The last entry of a commit has its time. */
export function rowOf<Logged extends { readonly at: number }>(row: Entry): LogRow<Logged> {
  const entries = decodeJson<readonly Logged[]>(row);
  return { stamp: String(row.key.at(-1)), at: entries.at(-1)?.at ?? 0, entries };
}

/**
 * The commits of several logs, in order, from the first rows of each after the same stamp; and the stamp up to which
 * they are complete: `horizon`, or before that the last row of a log that may have more, because it has `size` rows. A
 * commit after the horizon is left out even if one log has it, because another log may have been read before it.
 */
export function mergeLogs<Logged>(
  logs: readonly (readonly LogRow<Logged>[])[],
  size: number,
  horizon: string,
): { readonly commits: readonly LogRow<Logged>[]; readonly end: string } {
  const ends = logs.flatMap((rows) => rows.length === size ? rows.slice(-1).map(({ stamp }) => stamp) : []);
  const end = ends.reduce((first, stamp) => stamp < first ? stamp : first, horizon);
  const rows = logs.flat().filter(({ stamp }) => stamp <= end);
  const commits = [...Map.groupBy(rows, ({ stamp }) => stamp)].map(([stamp, own]) => ({
    stamp,
    at: Math.max(...own.map(({ at }) => at)),
    entries: own.flatMap(({ entries }) => entries),
  }));
  return { commits: commits.sort((one, other) => one.stamp < other.stamp ? -1 : 1), end };
}
