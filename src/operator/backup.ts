import { dirname, resolve } from "node:path";
import { makeFolder } from "../engine/mod.ts";
import { CommandError } from "./command_line.ts";
import { copyInWorker, type CopyOptions } from "./store_copy.ts";

const MAGIC = "SQLite format 3\0";
/** Offset of the format version in a file's header, and its value if there is a write-ahead log. */
const FORMAT_AT = 18;
const WITH_LOG = 2;

/** What a restore brings back. */
const RESTORED =
  "This brings back what was true at the time of the backup: keys that were replaced since then work " +
  "again, accounts that were suspended or closed since then are open, and ids that were used since then are used again. " +
  "If the feed of changes is on, its readers have to list everything again: they get 410.";

/**
 * Backs up a store, which may be in use. The file appears once it is complete and checked.
 *
 * @throws {CommandError} if that fails. Then no part of the backup remains.
 */
export async function backUp(kvPath: string, file: string, options: CopyOptions): Promise<void> {
  await withReason(`${kvPath} was not backed up`, async () => {
    await requireNone(file, "a backup never overwrites a file");
    await requireFile(kvPath);
    const source = resolve(kvPath);
    await writeAtomically(file, (target) => copyInWorker({ source, target, isRestored: false }, options));
  });
  options.err(`Backed up ${kvPath} to ${file}.`);
}

/**
 * Restores a backup to a path without a store. Says before what that brings back. The store appears once it is complete
 * and checked.
 *
 * @throws {CommandError} if that fails. Then no part of the store remains.
 */
export async function restore(file: string, kvPath: string, options: CopyOptions): Promise<void> {
  await withReason(`${file} was not restored`, async () => {
    // SQLite would apply the log of an old file to the new one.
    for (const end of ["", "-wal", "-shm", "-journal"]) {
      await requireNone(kvPath + end, "a restore never overwrites a store: move it away first");
    }
    await requireFile(file);
    await requireBackup(file);
    options.err(RESTORED);
    const source = resolve(file);
    const newFolders: string[] = [];
    for (let folder = dirname(resolve(kvPath)); !await exists(folder); folder = dirname(folder)) {
      newFolders.push(folder);
    }
    await makeFolder(resolve(kvPath));
    try {
      await writeAtomically(kvPath, (target) => copyInWorker({ source, target, isRestored: true }, options));
    } catch (error) {
      // Fails if another process already uses it.
      for (const folder of newFolders) await Deno.remove(folder).catch(() => {});
      throw error;
    }
  });
  options.err(`Restored ${kvPath} from ${file}.`);
}

async function withReason(what: string, work: () => Promise<void>): Promise<void> {
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

/** Requires a backup. A store that was copied by hand may lack its newest rows, which are in a separate log. */
async function requireBackup(path: string): Promise<void> {
  using file = await Deno.open(path);
  const header = new Uint8Array(FORMAT_AT + 1);
  await file.read(header);
  if (new TextDecoder().decode(header.subarray(0, MAGIC.length)) !== MAGIC) {
    throw new CommandError("it is not a backup of a store");
  }
  if (header[FORMAT_AT] === WITH_LOG) {
    throw new CommandError(
      "it is a store, not a backup of one. If sqlite3 .backup made it, it is complete: restore it after sqlite3 FILE " +
        "'PRAGMA journal_mode = DELETE'. If it was copied otherwise, its newest rows may be missing",
    );
  }
}

/** Whether a file, a folder or a link has this path. */
async function exists(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/**
 * Creates a file that only its owner can read. It appears at its path once it is written and synced, and never replaces
 * another file. `write` receives a temporary path. If it fails, nothing is left.
 *
 * @throws {CommandError} if the path exists, or if nothing can be created in its folder.
 */
export async function writeAtomically(path: string, write: (path: string) => Promise<void>): Promise<void> {
  const folder = dirname(resolve(path));
  if (!await exists(folder)) throw new CommandError(`there is no folder ${folder}`);
  const unfinished = await makeUnfinished(folder);
  try {
    const file = `${unfinished}/file`;
    await write(file);
    if (Deno.build.os !== "windows") await Deno.chmod(file, 0o600);
    await sync(file, { read: true, write: true });
    await linkTo(file, path);
  } finally {
    await Deno.remove(unfinished, { recursive: true });
  }
  if (Deno.build.os !== "windows") await sync(folder, { read: true });
}

/**
 * Creates a temporary folder for the new file and the files that SQLite creates beside it, so that all can be removed
 * together. Its name does not contain the file's name, which may be too long or have characters that Deno does not
 * allow here, such as colons.
 */
async function makeUnfinished(folder: string): Promise<string> {
  try {
    return await Deno.makeTempDir({ dir: folder, suffix: ".unfinished" });
  } catch (error) {
    // Deno's message does not name the folder.
    const reason = error instanceof Error ? error.message.replace(/: tmpdir$/, "") : typeof error;
    throw new CommandError(`cannot create anything in ${folder}: ${reason}`);
  }
}

async function sync(path: string, options: Deno.OpenOptions): Promise<void> {
  using file = await Deno.open(path, options);
  await file.sync();
}

/** Gives the file its path. Unlike a rename, a link never replaces a file that was created in the meantime. */
async function linkTo(file: string, path: string): Promise<void> {
  try {
    await Deno.link(file, path);
  } catch {
    if (await exists(path)) throw new CommandError(`${path} was created in the meantime`);
    // The file system may not support links.
    await Deno.rename(file, path);
  }
}
