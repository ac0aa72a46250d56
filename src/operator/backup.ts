import { dirname, resolve } from "node:path";
import { Worker } from "node:worker_threads";
import { makeFolder } from "../kv/file.ts";
import { exists, writeAtomically } from "./atomic_file.ts";
import type { CopyJob, CopyReport } from "./store_copy.ts";
import { CommandError } from "./terminal.ts";

/** How a store is copied. */
export interface CopyOptions {
  /** Writes a line for people. */
  readonly err: (line: string) => void;
  /** Aborts when the work is to be given up. */
  readonly signal: AbortSignal;
}

const MAGIC = "SQLite format 3\0";
/** Where the header of a file tells its format, and what it tells of one with a write-ahead log. */
const FORMAT_AT = 18;
const WITH_LOG = 2;

/**
 * Makes a backup of a store, which may be in use. The file appears once it is complete and checked.
 *
 * @throws {CommandError} when it was not made; then nothing is left of it.
 */
export async function backUp(kvPath: string, file: string, options: CopyOptions): Promise<void> {
  await explained(`${kvPath} was not backed up`, async () => {
    await requireNone(file, "a backup overwrites nothing");
    await requireFile(kvPath);
    const source = resolve(kvPath);
    await writeAtomically(file, (target) => copy({ source, target, distrusted: false }, options));
  });
  options.err(`Backed up ${kvPath} to ${file}.`);
}

/**
 * Puts a backup where there is no store. The store appears once it is complete and checked.
 *
 * @throws {CommandError} when it was not put there; then nothing is left of it.
 */
export async function restore(file: string, kvPath: string, options: CopyOptions): Promise<void> {
  await explained(`${file} was not restored`, async () => {
    // SQLite would carry out in the new file what is left of the old one in these.
    for (const end of ["", "-wal", "-shm", "-journal"]) {
      await requireNone(kvPath + end, "a backup takes no store's place: move it away first");
    }
    await requireFile(file);
    await requireBackup(file);
    const [source, folder] = [resolve(file), dirname(resolve(kvPath))];
    const isNew = !await exists(folder);
    await makeFolder(resolve(kvPath));
    try {
      await writeAtomically(kvPath, (target) => copy({ source, target, distrusted: true }, options));
    } catch (error) {
      if (isNew) await Deno.remove(folder).catch(() => {}); // Unless somebody else uses it by now.
      throw error;
    }
  });
  options.err(`Restored ${kvPath} from ${file}.`);
}

async function explained(what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const reason = error instanceof Error ? error.message.split("\n")[0] : typeof error;
    throw new CommandError(`${what}: ${reason}`);
  }
}

async function requireNone(path: string, rule: string): Promise<void> {
  if (await exists(path)) throw new CommandError(`${path} exists, and ${rule}`);
}

async function requireFile(path: string): Promise<void> {
  if (!await exists(path)) throw new CommandError("there is no such file");
  if (!(await Deno.stat(path)).isFile) throw new CommandError("it is not a file");
}

/** A store that was copied by hand looks complete, though its newest rows may be in a log that was not. */
async function requireBackup(path: string): Promise<void> {
  using file = await Deno.open(path);
  const header = new Uint8Array(FORMAT_AT + 1);
  await file.read(header);
  if (new TextDecoder().decode(header.subarray(0, MAGIC.length)) !== MAGIC) {
    throw new CommandError("it is no backup of a store");
  }
  if (header[FORMAT_AT] === WITH_LOG) {
    throw new CommandError("it is a store itself; have deno task backup make a backup of it");
  }
}

/** Has a worker copy: SQLite does not pause, and would keep this thread from hearing Ctrl-C. */
async function copy(job: CopyJob, { err, signal }: CopyOptions): Promise<void> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const giveUp = () => reject(signal.reason);
  signal.addEventListener("abort", giveUp);
  const worker = new Worker(new URL("./store_copy_worker.ts", import.meta.url), { workerData: job });
  worker.on("error", reject);
  worker.on("exit", () => reject(new CommandError("the copying ended early")));
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
