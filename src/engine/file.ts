import { monotonicNow, msSince, PAST, plus } from "../base/mod.ts";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { MARKERS, sweepMarkers } from "./abandoned.ts";
import {
  type Backend,
  type BackendOptions,
  type Build,
  CommitInDoubt,
  type CommitResult,
  PAUSE,
  REFUSED,
} from "./backend.ts";
import {
  AGAIN,
  againIfLocked,
  DeadlineExceeded,
  KV_DEADLINE,
  LOCKED,
  openKv,
  retried,
  StoreUnavailable,
  withDeadline,
} from "./deadline.ts";
import { FileWatch } from "./file_watch.ts";
import { EngineMetrics } from "./metrics.ts";
import { encodeJson, encodeText, type Entry, getRows, type ListOptions, listRows } from "./row.ts";

/** The path for a KV in this process's memory. */
export const MEMORY = ":memory:";

/** Maximum number of checks in one commit. */
const MAX_CHECKS = 100;
const PROBE: Deno.KvKey = [MARKERS, "probe"];
const SMALL = encodeJson({});
/** Takes about as much room as the largest row that KV stores. */
const LARGE = encodeJson({ filler: "0".repeat(65_000) });
/** Interval between large probes, in ms. */
const PROBE_INTERVAL = 10_000;
/** How KV's messages name what a disk without room does. */
const DISK_FAILURE = /\bdisk\b/;

/** Options for opening a file. */
export interface FileOptions {
  /** Whether to create the file, which only its owner can read, and its first row if they are missing. */
  readonly create: boolean;
  /** Whether to create the folder, too. Otherwise it must exist. */
  readonly makesFolder?: boolean;
  /**
   * Called if the KV file is removed, renamed or replaced, or its write-ahead log is removed, after which every write
   * fails. Without it, nobody notices.
   */
  readonly onLost?: (error: StoreUnavailable) => void;
}

/** Options of a {@linkcode FileBackend}. */
interface FileBackendOptions extends BackendOptions {
  /** A handle for reads, so that they do not wait for writes. By default, there is only one handle. */
  readonly reader?: Deno.Kv | undefined;
  /** Undefined if SQLite cannot read the file. */
  readonly state?: FileState | undefined;
}

/**
 * A KV file, or a KV in memory. What SQLite acknowledged is stored, and what it refused is not, so a commit needs no
 * marker. Only a commit that missed its deadline is in doubt, and it ends when SQLite does.
 */
export class FileBackend implements Backend {
  readonly maxChecks: number = MAX_CHECKS;
  /** Commits follow each other in SQLite, too. */
  readonly lanes: number = 1;
  readonly #clock: () => number;
  readonly #state: FileState | undefined;
  readonly #writes: Handle;
  readonly #reads: Handle;
  #watch: FileWatch | undefined;
  /** Why no write would be found again; undefined while it would be. */
  #lost: string | undefined;
  /** Whether the disk had no room for a write, and for every large probe since. */
  #isFull = false;
  /** When the next large probe may begin. */
  #nextProbe = PAST;

  constructor(kv: Deno.Kv, { clock, reader, state, ...options }: FileBackendOptions) {
    this.#clock = clock;
    this.#state = state;
    this.#writes = new Handle(kv, options);
    this.#reads = reader ? new Handle(reader, options) : this.#writes;
  }

  /** Opens a file or `:memory:`. */
  static async open(
    path: string,
    { onLost, ...options }: BackendOptions & FileOptions,
  ): Promise<FileBackend> {
    // A KV in memory is visible through only one handle.
    if (path === MEMORY) return new FileBackend(await openKv(path), options);
    await prepareFile(path, options);
    const kv = await openKv(path);
    const reader = await openKv(path).catch((error) => {
      kv.close();
      throw error;
    });
    const backend = new FileBackend(kv, { ...options, reader, state: await openFileState(path) });
    if (onLost) {
      backend.#watch = new FileWatch(path, (reason) => {
        backend.#lost = reason;
        onLost(new StoreUnavailable(reason));
      });
    }
    return backend;
  }

  get dataVersion(): number | undefined {
    return this.#state?.version();
  }

  get size(): number | undefined {
    return this.#state?.size();
  }

  versionsOf(keys: readonly Deno.KvKey[]): readonly (string | null)[] | undefined {
    return this.#state?.versionsOf(keys);
  }

  getMany(keys: readonly Deno.KvKey[]): Promise<(Entry | null)[]> {
    return this.#reads.run("read", (kv) => getRows(kv, keys));
  }

  list(selector: Deno.KvListSelector, limit: number, options?: ListOptions): Promise<Entry[]> {
    return this.#reads.run("read", (kv) => listRows(kv, selector, limit, options));
  }

  async commit(build: Build, checks: readonly Deno.AtomicCheck[]): Promise<CommitResult> {
    const result = await retried(() => this.#send(build, checks), LOCKED);
    if (result.ok) return result;
    return { ok: false, rows: await this.getMany(checks.map(({ key }) => key)) };
  }

  /** Writes a row. If the disk was full, the row is so large that there is room for others, too. */
  async probe(): Promise<void> {
    const isLarge = this.#isFull;
    if (isLarge && monotonicNow() < this.#nextProbe) throw new StoreUnavailable("The disk was full");
    if (isLarge) this.#nextProbe = plus(monotonicNow(), PROBE_INTERVAL);
    await this.commit((operation) => operation.set(PROBE, isLarge ? LARGE : SMALL), []);
    if (isLarge) this.#isFull = false;
  }

  /** Removes markers of processes that reached this file through a server, or that run an earlier release. */
  sweep(): Promise<boolean> {
    return sweepMarkers(this, this.#clock());
  }

  /** Closes the handles. If an operation is hanging, they stay open until the process ends. */
  close(): Promise<void> {
    // The last handle to close checkpoints the write-ahead log, so it must not be this read-only one.
    this.#state?.close();
    this.#watch?.stop();
    const closed = [...new Set([this.#reads, this.#writes])].map((handle) => handle.close());
    if (!closed.includes(false)) this.#watch?.close();
    return Promise.resolve();
  }

  /** Sends a commit; AGAIN if another process had locked the file. */
  async #send(build: Build, checks: readonly Deno.AtomicCheck[]): Promise<CommitResult | typeof AGAIN> {
    if (this.#lost !== undefined) throw new StoreUnavailable(this.#lost);
    let sent: Promise<CommitResult | typeof AGAIN> | undefined;
    try {
      return await this.#writes.run("write", (kv) => {
        const operation = kv.atomic().check(...checks);
        build(operation, kv.commitVersionstamp());
        return sent = operation.commit().then(resultOf, againIfLocked);
      });
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#isFull ||= DISK_FAILURE.test(error.logReason);
      if (!(error instanceof DeadlineExceeded) || sent === undefined) throw error;
      const result = sent.then((result) => result === AGAIN ? REFUSED : result, () => REFUSED);
      throw new CommitInDoubt(() => withDeadline(result, PAUSE), error);
    }
  }
}

function resultOf(result: Deno.KvCommitResult | Deno.KvCommitError): CommitResult {
  return result.ok ? result : REFUSED;
}

/** A handle on a file. If an operation hangs, later ones wait until it ends, at most until their own deadline. */
class Handle {
  readonly #kv: Deno.Kv;
  readonly #deadline: number;
  readonly #metrics: EngineMetrics;
  /** Settles when every operation that missed its deadline has ended; undefined if there is none. */
  #hanging: Promise<unknown> | undefined;

  constructor(
    kv: Deno.Kv,
    { deadline = KV_DEADLINE, metrics = new EngineMetrics() }: Omit<BackendOptions, "clock">,
  ) {
    this.#kv = kv;
    this.#deadline = deadline;
    this.#metrics = metrics;
  }

  /**
   * @throws {StoreUnavailable} if the operation fails.
   * @throws {DeadlineExceeded} if it takes too long.
   */
  async run<T>(kind: "read" | "write", operate: (kv: Deno.Kv) => Promise<T>): Promise<T> {
    const started = monotonicNow();
    let left = this.#deadline;
    let operation: Promise<T> | undefined;
    try {
      if (this.#hanging) {
        await withDeadline(this.#hanging, left);
        left -= Math.round(msSince(started));
      }
      operation = operate(this.#kv);
      return await withDeadline(operation, left);
    } catch (error) {
      if (error instanceof StoreUnavailable) this.#metrics.kvFailures.add(1, kind);
      if (error instanceof DeadlineExceeded && operation) this.#waitFor(operation);
      throw error;
    } finally {
      this.#metrics.kvDuration.observe(msSince(started) / 1_000, kind);
    }
  }

  /**
   * Closes it, unless an operation is hanging: that would block the whole process until the operation ends. Returns
   * whether it is closed.
   */
  close(): boolean {
    if (this.#hanging !== undefined) return false;
    this.#kv.close();
    return true;
  }

  #waitFor(operation: Promise<unknown>): void {
    const hanging = Promise.allSettled([this.#hanging, operation]);
    this.#hanging = hanging;
    hanging.then(() => {
      if (this.#hanging === hanging) this.#hanging = undefined;
    });
  }
}

/**
 * Creates the folder for a KV file if it does not exist. Only the folder's owner gets access.
 *
 * @throws {Error} with the reason, if it cannot be created.
 */
export async function makeFolder(path: string): Promise<void> {
  const folder = folderOf(path);
  try {
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : typeof error;
    throw new Error(`the folder ${folder} cannot be created: ${reason}`);
  }
}

/**
 * Checks that a path can be opened as a KV file, or creates an empty one. Its folder must exist, in case the path is
 * mistyped. The file must not be another program's database, because opening it would change it.
 *
 * @throws {Error} with the reason, if it cannot be opened.
 */
export async function prepareFile(path: string, { create, makesFolder }: FileOptions): Promise<void> {
  const folder = folderOf(path);
  if (makesFolder) await makeFolder(path);
  else if (create && !(await find(folder))?.isDirectory) {
    throw new Error(`there is no folder ${folder}, and only the folder of the default KV_PATH is created`);
  }
  const found = await find(path);
  if (!found) {
    if (!create) throw new Error("there is no such file, and only the service creates it when it starts");
    // SQLite would delete the log of a file that is empty.
    if ((await find(`${path}-wal`))?.size) {
      throw new Error(
        `there is no such file, but ${path}-wal, which has its newest rows: move the file back, or both away`,
      );
    }
    // SQLite gives the files that it adds the same mode.
    return (await Deno.open(path, { write: true, create: true, mode: 0o600 })).close();
  }
  if (found.isDirectory) throw new Error("it is a folder");
  // Opening a pipe would never return.
  if (!found.isFile) throw new Error("it is not a file");
  if (found.size === 0 && !create) throw new Error("it is empty");
  const tables = await tablesIn(path);
  // The first table that Deno creates in a KV.
  if (tables.length > 0 && !tables.includes("migration_state")) {
    throw new Error("it is the database of another program");
  }
}

function folderOf(path: string): string {
  return path.replace(/[^/\\]*$/, "") || ".";
}

/** Stats a path; undefined if it does not exist. */
async function find(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.stat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return undefined;
    throw error;
  }
}

/** The names of the tables in a database. Blocks for a few seconds if it is locked. */
async function tablesIn(path: string): Promise<unknown[]> {
  const { DatabaseSync } = await import("node:sqlite");
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const rows = database.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
    return rows.map(({ name }) => name);
  } finally {
    database.close();
  }
}

/** What SQLite reports about a KV file. It is read synchronously. */
export interface FileState {
  /** A number that changes with every commit; undefined if the file is locked or cannot be read. */
  readonly version: () => number | undefined;
  /** Size in bytes, with that of the write-ahead log; undefined if the file is locked or cannot be read. */
  readonly size: () => number | undefined;
  /** Versionstamps of rows, null for a missing one; undefined if only KV can read them. */
  readonly versionsOf: (keys: readonly Deno.KvKey[]) => readonly (string | null)[] | undefined;
  readonly close: () => void;
}

/** Opens an existing file to read its state; undefined if SQLite cannot open it. */
export async function openFileState(path: string): Promise<FileState | undefined> {
  let database: DatabaseSync | undefined;
  try {
    // Not imported on Deno Deploy, which has no files.
    const sqlite = await import("node:sqlite");
    database = new sqlite.DatabaseSync(path, { readOnly: true });
    return await stateOf(database, path);
  } catch {
    database?.close();
    return undefined;
  }
}

async function stateOf(database: DatabaseSync, path: string): Promise<FileState> {
  database.exec("PRAGMA busy_timeout = 0");
  const version = database.prepare("PRAGMA data_version");
  const size = database.prepare(
    "SELECT page_count * page_size AS size FROM pragma_page_count, pragma_page_size",
  );
  // Opened now, because the service gives up its access to files. Closing it releases no lock: SQLite locks no log.
  const log = await Deno.open(`${path}-wal`).catch(() => undefined);
  const versionsIn = versionReader(database);
  return {
    version: () => numberIn(version, "data_version"),
    versionsOf(keys) {
      try {
        return versionsIn?.(keys);
      } catch {
        return undefined; // The file is locked.
      }
    },
    size() {
      const bytes = numberIn(size, "size");
      return bytes === undefined ? undefined : bytes + (log?.seekSync(0, Deno.SeekMode.End) ?? 0);
    },
    close() {
      log?.close();
      database.close();
    },
  };
}

/** The number of migrations after which a KV's table of rows is as `versionReader()` expects. */
const MIGRATIONS = 3;

/** Returns a function that reads the versionstamps of rows; undefined if KV's tables are not as expected. */
function versionReader(database: DatabaseSync): FileState["versionsOf"] | undefined {
  try {
    const { count } = database.prepare("SELECT version AS count FROM migration_state").get() ?? {};
    if (count !== MIGRATIONS) return undefined;
    const statements = new Map<number, StatementSync>();
    return (keys) => {
      let statement = statements.get(keys.length);
      if (statement === undefined) {
        const columns = keys.map((_, index) => `(SELECT version FROM kv WHERE k = ?) AS row${index}`);
        statements.set(keys.length, statement = database.prepare(`SELECT ${columns}`));
      }
      // Each call is a transaction of its own, which sees all commits before it.
      const versions = statement.get(...keys.map(encodedKey)) ?? {};
      return keys.map((_, index) => {
        const version = versions[`row${index}`];
        return version === null ? null : `${Number(version).toString(16).padStart(16, "0")}0000`;
      });
    };
  } catch {
    return undefined;
  }
}

const ENCODED: WeakMap<Deno.KvKey, Uint8Array<ArrayBuffer>> = new WeakMap();

/** A key of texts as KV stores it: with a byte before and one after each text. Throws for other keys. */
function encodedKey(key: Deno.KvKey): Uint8Array<ArrayBuffer> {
  const known = ENCODED.get(key);
  if (known) return known;
  if (!key.every((part) => typeof part === "string" && !part.includes("\0"))) {
    throw new TypeError("Not texts");
  }
  const encoded = encodeText(key.map((part) => `\x02${String(part)}\0`).join(""));
  ENCODED.set(key, encoded);
  return encoded;
}

/** The number in the column; undefined if the statement fails. */
function numberIn(statement: StatementSync, column: string): number | undefined {
  try {
    const number = statement.get()?.[column];
    return typeof number === "number" ? number : undefined;
  } catch {
    return undefined;
  }
}
