import type { StatementSync } from "node:sqlite";

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

/** Creates an empty KV file if it does not exist. Only its owner gets access, as to the files that SQLite adds. */
async function makeFile(path: string): Promise<void> {
  try {
    using _ = await Deno.open(path, { write: true, createNew: true, mode: 0o600 });
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
}

/** Options of {@linkcode prepareFile}. */
export interface FileOptions {
  /** Whether to create the file, which only its owner can read, and its first row if they are missing. */
  readonly create: boolean;
  /** Whether to create the folder, too. Otherwise it must exist. */
  readonly makesFolder?: boolean;
}

/**
 * Checks that a path can be opened as a KV file, or creates an empty one. Its folder must exist, in case the path is mistyped. The file must
 * not be another program's database, because opening it would change it.
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
  if (!found && create) return await makeFile(path);
  if (!found) throw new Error("there is no such file, and only the service creates it when it starts");
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

/** Numbers that SQLite reports about a KV file. They are read synchronously. */
export interface FileState {
  /** A number that changes with every commit; undefined if the file is locked or cannot be read. */
  readonly version: () => number | undefined;
  /** Size in bytes, with that of the write-ahead log; undefined if the file is locked or cannot be read. */
  readonly size: () => number | undefined;
  readonly close: () => void;
}

/** Opens an existing file to read its state; undefined if SQLite cannot open it. */
export async function openFileState(path: string): Promise<FileState | undefined> {
  try {
    // Not imported on Deno Deploy, which has no files.
    const { DatabaseSync } = await import("node:sqlite");
    const database = new DatabaseSync(path, { readOnly: true });
    database.exec("PRAGMA busy_timeout = 0");
    const version = database.prepare("PRAGMA data_version");
    const size = database.prepare(
      "SELECT page_count * page_size AS size FROM pragma_page_count, pragma_page_size",
    );
    // Opened now, because the service gives up its access to files. Closing it releases no lock: SQLite locks no log.
    const log = await Deno.open(`${path}-wal`).catch(() => undefined);
    return {
      version: () => numberIn(version, "data_version"),
      size() {
        const bytes = numberIn(size, "size");
        return bytes === undefined ? undefined : bytes + (log?.seekSync(0, Deno.SeekMode.End) ?? 0);
      },
      close() {
        log?.close();
        database.close();
      },
    };
  } catch {
    return undefined;
  }
}

/**
 * Notices that a KV file is removed or renamed: SQLite would keep writing to it, where nobody finds it. It watches the
 * file itself, because each commit is several events in the folder, which would double its cost. Where files cannot be
 * watched, it notices nothing.
 */
export class FileWatch {
  /** Whether the file has been removed or renamed. */
  isLost = false;
  readonly #watcher: Deno.FsWatcher | undefined;

  /** `onLost` is called once, when the file is removed or renamed. */
  constructor(path: string, onLost: () => void) {
    try {
      this.#watcher = Deno.watchFs(path);
      this.#follow(this.#watcher, onLost).catch(() => {});
    } catch {
      // Some file systems cannot be watched.
    }
  }

  async #follow(watcher: Deno.FsWatcher, onLost: () => void): Promise<void> {
    for await (const { kind } of watcher) {
      if (kind !== "remove" && kind !== "rename") continue;
      this.isLost = true;
      return onLost();
    }
  }

  close(): void {
    if (!this.isLost) this.#watcher?.close();
  }
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
