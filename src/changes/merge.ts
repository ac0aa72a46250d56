// Several logs as one: pure functions.

/** A row of a log. */
export interface LogRow<Entry> {
  /** The versionstamp of the commit that appended it. */
  readonly stamp: string;
  /** When that was decided, in ms since the epoch. */
  readonly at: number;
  readonly entries: readonly Entry[];
}

/** The first rows of a log in a range. */
export interface Piece<Entry> {
  readonly rows: readonly LogRow<Entry>[];
  /** Whether the log may have more rows in the range. */
  readonly isCut: boolean;
}

/**
 * The commits of several logs, in order, and the stamp up to which they are complete: `horizon`, or before that the end
 * of a piece that was cut. All pieces begin at the same stamp. A commit that comes after the horizon has to be left out
 * even if one piece has it, because another piece may have been read before it.
 */
export function mergeLogs<Entry>(
  pieces: readonly Piece<Entry>[],
  horizon: string,
): { readonly commits: readonly LogRow<Entry>[]; readonly end: string } {
  const ends = pieces.flatMap(({ rows, isCut }) => isCut ? rows.slice(-1).map(({ stamp }) => stamp) : []);
  const end = ends.reduce((first, stamp) => stamp < first ? stamp : first, horizon);
  const rows = pieces.flatMap(({ rows }) => rows).filter(({ stamp }) => stamp <= end);
  const commits = [...Map.groupBy(rows, ({ stamp }) => stamp)].map(([stamp, own]) => ({
    stamp,
    at: Math.max(...own.map(({ at }) => at)),
    entries: own.flatMap(({ entries }) => entries),
  }));
  return { commits: commits.sort((one, other) => one.stamp < other.stamp ? -1 : 1), end };
}
