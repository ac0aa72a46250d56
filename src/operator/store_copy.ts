import { backup, DatabaseSync } from "node:sqlite";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { Connection } from "../kv/connection.ts";
import { AGAIN, retried } from "../kv/deadline.ts";
import { requireSchema } from "../kv/schema.ts";
import { CommandError } from "./command_line.ts";

/** A file of a store to copy. */
export interface CopyJob {
  readonly source: string;
  /** The file to make. */
  readonly target: string;
  /** Whether to check the source before it is copied, too. */
  readonly distrusted: boolean;
  /** How many pages to copy between two notices. */
  readonly step?: number;
}

/** How a store is copied. */
export interface CopyOptions {
  /** Writes a line for people. */
  readonly err: (line: string) => void;
  /** Aborts when the work is to be given up. */
  readonly signal: AbortSignal;
}

/** What the worker tells; the last time, neither a notice nor a failure if all went well. */
interface CopyReport {
  /** A line for people. */
  readonly notice?: string;
  /** Why there is no copy. */
  readonly failure?: string;
}

/**
 * Copies a store as `copyStore` does, in a worker. SQLite checks a file without a pause, for seconds if it has
 * gigabytes, and waits for locks; this thread would not hear Ctrl-C meanwhile.
 *
 * @throws {CommandError}
 */
export async function copyInWorker(job: CopyJob, { err, signal }: CopyOptions): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const giveUp = () => reject(signal.reason);
  signal.addEventListener("abort", giveUp);
  // Without `env`, Deno would ask at the terminal whether all variables may be read.
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

/** 100 MB. Deno 2.5 sleeps for a quarter of a second between two steps, and gives no notice. */
const STEP = 25_000;
const LOCK_TIMEOUT = 5_000;

/**
 * Copies a store as it is at one moment, even while others write to it, and makes sure that the copy is sound.
 * The copy is one file and complete without a write-ahead log. Waits inside SQLite, for as long as it takes.
 *
 * @throws {CommandError} when the store is damaged, or not one that this version of the service reads.
 */
export async function copyStore(job: CopyJob, notice: (line: string) => void): Promise<void> {
  const source = openDatabase(job.source);
  let noticed = false;
  try {
    if (job.distrusted) requireSound(source);
    // While this snapshot is held, no write of others makes SQLite copy everything anew.
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
  await checkCopy(job.target);
}

async function checkCopy(path: string): Promise<void> {
  const copy = openDatabase(path);
  try {
    requireSound(copy);
    if (copy.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'kv'").get() === undefined) {
      throw new CommandError("it is not a Deno KV");
    }
    await requireRows(path);
    await retried(() => Promise.resolve(leaveLog(copy) || AGAIN));
  } finally {
    copy.close();
  }
}

async function requireRows(path: string): Promise<void> {
  using kv = await Deno.openKv(path);
  await requireSchema(new Connection([kv]), false);
}

/** Makes a database do without a write-ahead log; false while the KV has not closed it yet. */
function leaveLog(database: DatabaseSync): boolean {
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
