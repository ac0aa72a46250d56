import { sweepMarkers } from "../abandoned.ts";
import type { Backend, BackendOptions, Build, CommitResult } from "../backend.ts";
import { StoreUnavailable } from "../deadline.ts";
import { type Entry, getRows, type ListOptions, listRows } from "../row.ts";
import { Connection, type ConnectionOptions } from "./connection.ts";
import { Markers } from "./markers.ts";

/** A commit can have ten checks on every KV. One is for the marker. */
const MAX_CHECKS = 9;
const MIN_LANES = 3;
const MAX_LANES = 12;
/** A lane more is worth having for each of these round trips, in ms. */
const ROUND_TRIP = 8;

/**
 * A KV at a distance: a KV Connect server, or the KV of Deno Deploy. Connections break there, replies get lost, and
 * Deno's client repeats commits.
 */
export class RemoteBackend implements Backend {
  readonly maxChecks: number = MAX_CHECKS;
  readonly #clock: () => number;
  readonly #connection: Connection;
  readonly #markers: Markers;

  constructor(kvs: readonly Deno.Kv[], options: BackendOptions & ConnectionOptions) {
    this.#clock = options.clock;
    this.#connection = new Connection(kvs, options);
    this.#markers = new Markers(this.#connection, options.clock);
  }

  get lanes(): number {
    return Math.min(Math.max(Math.round(this.#connection.roundTrip / ROUND_TRIP), MIN_LANES), MAX_LANES);
  }

  getMany(keys: readonly Deno.KvKey[]): Promise<(Entry | null)[]> {
    return this.#connection.run("read", (kv) => getRows(kv, keys));
  }

  list(selector: Deno.KvListSelector, limit: number, options?: ListOptions): Promise<Entry[]> {
    return this.#connection.run("read", (kv) => listRows(kv, selector, limit, options));
  }

  commit(build: Build, checks: readonly Deno.AtomicCheck[]): Promise<CommitResult> {
    return this.#markers.commit(build, checks);
  }

  /** Sets a marker. */
  async probe(): Promise<void> {
    await this.commit(() => {}, []);
  }

  sweep(): Promise<boolean> {
    return sweepMarkers(this, this.#clock(), (marker) => this.#markers.isOwn(marker));
  }

  /** Removes this process's markers, and closes the handles. */
  async close(): Promise<void> {
    try {
      await this.#markers.clear();
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
    } finally {
      await this.#connection.close();
    }
  }
}
