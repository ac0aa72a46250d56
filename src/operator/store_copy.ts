import { backup, DatabaseSync } from "node:sqlite";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { AGAIN, openStore, requireReadable, retried, Transactions } from "../engine/mod.ts";
import { appendGap, FEED, newTag } from "../resource/mod.ts";
import { CommandError } from "./command_line.ts";

/** A store's file to copy. */
export interface CopyJob {
  readonly source: string;
  /** Path of the copy. */
  readonly target: string;
  /** Whether the copy is restored: the source is checked, too, and readers of its feed have to list everything again. */
  readonly isRestored: boolean;
  /** Number of pages between two progress notices. */
  readonly step?: number;
}

/** Options of {@linkcode copyInWorker}. */
export interface CopyOptions {
  /** Writes a line to standard error. */
  readonly err: (line: string) => void;
  /** Aborts the copy. */
  readonly signal: AbortSignal;
}

/** A message from the worker. The last one is empty if the copy succeeded. */
interface CopyReport {
  /** A line for the operator. */
  readonly notice?: string;
  /** Why the copy failed. */
  readonly failure?: string;
}

/**
 * Calls `copyStore` in a worker, because SQLite blocks its thread while it checks a file or waits for locks. In the
 * meantime, this thread can handle Ctrl-C.
 *
 * @throws {CommandError}
 */
export async function copyInWorker(job: CopyJob, { err, signal }: CopyOptions): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const giveUp = () => reject(signal.reason);
  signal.addEventListener("abort", giveUp);
  // Without `env`, Deno would prompt for access to all variables.
  const worker = new Worker(new URL(import.meta.url), { workerData: job, env: {} });
  worker.on("error", reject);
  worker.on("exit", () => reject(new CommandError("the copy ended early")));
  worker.on("message", ({ notice, failure }: CopyReport) => {
    if (notice !== undefined) err(notice);
    else if (failure !== undefined) reject(new CommandError(failure));
    else resolve();
  });
  try {
    await promise;
  } finally {
    signal.removeEventListener("abort", giveUp);
    await worker.terminate();
  }
}

/** 100 MB. */
const STEP = 25_000;
const LOCK_TIMEOUT = 5_000;

/**
 * Copies a snapshot of a store, even while other processes write to it, and checks the copy. The copy is one file,
 * without a write-ahead log. Blocks its thread.
 *
 * @throws {CommandError} if the store is damaged, or if this release cannot read it.
 */
export async function copyStore(job: CopyJob, notice: (line: string) => void): Promise<void> {
  const source = openDatabase(job.source);
  let noticed = false;
  try {
    if (job.isRestored) requireSound(source);
    // While this snapshot is open, writes by other processes do not make SQLite start over.
    source.exec("BEGIN");
    source.prepare("SELECT * FROM sqlite_schema").get();
    await backup(source, job.target, {
      rate: job.step ?? STEP,
      progress({ totalPages, remainingPages }) {
        noticed = true;
        notice(`Copied ${totalPages - remainingPages} of ${totalPages} pages.`);
      },
    });
  } finally {
    source.close();
  }
  if (noticed) notice("Copied all pages. Checking the copy.");
  await checkCopy(job);
}

async function checkCopy({ target: path, isRestored }: CopyJob): Promise<void> {
  const copy = openDatabase(path);
  try {
    requireSound(copy);
    if (copy.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'kv'").get() === undefined) {
      throw new CommandError("it is not a Deno KV");
    }
    await requireReadable(path);
    if (isRestored) await interruptFeed(path);
    await retried(() => Promise.resolve(disableWal(copy) || AGAIN));
  } finally {
    copy.close();
  }
}

/** Appends a gap to the feed of changes if it is on: its readers may have read what the restore takes back. */
async function interruptFeed(path: string): Promise<void> {
  const store = await openStore(path, { clock: Date.now, create: false });
  try {
    const tag = newTag();
    await new Transactions(store, Date.now).run({
      decide(rows, write): undefined {
        if (rows.features[FEED]) appendGap(rows, write, tag);
      },
    });
  } finally {
    await store.close();
  }
}

/** Switches off the write-ahead log; false if the KV has not closed the database yet. */
function disableWal(database: DatabaseSync): boolean {
  try {
    return database.prepare("PRAGMA journal_mode = DELETE").get()?.["journal_mode"] === "delete";
  } catch (error) {
    if (error instanceof Error && error.message.includes("locked")) return false;
    throw error;
  }
}

function openDatabase(path: string): DatabaseSync {
  const database = new DatabaseSync(path);
  database.exec(`PRAGMA busy_timeout = ${LOCK_TIMEOUT}`);
  return database;
}

function requireSound(database: DatabaseSync): void {
  const found = database.prepare("PRAGMA integrity_check(1)").get()?.["integrity_check"];
  if (found !== "ok") throw new CommandError(`it is damaged: ${String(found).split("\n").join(" ")}`);
}

if (parentPort) {
  const report = (report: CopyReport) => parentPort?.postMessage(report);
  await copyStore(workerData, (notice) => report({ notice })).then(
    () => report({}),
    (error) => report({ failure: error instanceof Error ? error.message : typeof error }),
  );
}
