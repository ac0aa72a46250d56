import { encodeJson, type Entry, versionstampOf } from "../kv/row.ts";

/** A row whose version is watched: it changes whenever something does that is kept in memory. */
export interface Watched {
  readonly key: Deno.KvKey;
  /** Its version, as far as it is known; "" where there is no row. Versions compare as strings. */
  version: string;
}

/** What a watched row holds: only its version matters. */
const CHANGED = encodeJson({});

/** Has a commit change the version of a row. */
export function touch(operation: Deno.AtomicOperation, { key }: Watched): void {
  operation.set(key, CHANGED);
}

/** Takes note of a version that was seen. */
export function seeVersion(row: Watched, versionstamp: string): void {
  if (versionstamp > row.version) row.version = versionstamp;
}

/** A watched row has another version than a change relied on; nothing was changed. */
export class Outdated extends Error {
  override readonly name = "Outdated";
}

/**
 * That a watched row still has the version that was seen last. A commit that checks it finds out, so that nobody
 * has to look beforehand.
 */
export class VersionCheck implements Deno.AtomicCheck {
  readonly key: Deno.KvKey;
  /** Null where there is no row. */
  readonly versionstamp: string | null;
  readonly #row: Watched;
  readonly #version: string;
  /** By `performance.now()`. */
  #heldAt = -Infinity;

  constructor(row: Watched) {
    this.#row = row;
    this.#version = row.version;
    this.key = row.key;
    this.versionstamp = row.version || null;
  }

  /** Whether it holds, as far as is known. */
  get holds(): boolean {
    return this.#row.version === this.#version;
  }

  /** Whether a commit has found it to hold that started at this time, by `performance.now()`, or later. */
  heldSince(time: number): boolean {
    return this.#heldAt >= time;
  }

  /** Takes note that a commit has found it to hold which had started at `started`, by `performance.now()`. */
  seeHold(started: number): void {
    this.#heldAt = Math.max(this.#heldAt, started);
  }

  /** Takes note of the row as it was read for a commit that was refused. */
  seeRow(entry: Entry | null): void {
    seeVersion(this.#row, versionstampOf(entry) ?? "");
  }
}
