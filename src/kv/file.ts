import type { StatementSync } from "node:sqlite";

/**
 * Makes the folder for the file of a KV, for its owner alone, unless it exists.
 *
 * @throws {Error} saying why it cannot be made.
 */
export async function makeFolder(path: string): Promise<void> {
  const folder = folderOf(path);
  try {
    await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : typeof error;
    throw new Error(`the folder ${folder} cannot be made: ${reason}`);
  }
}

/** What may be made for a KV. */
export interface FileOptions {
  /** Whether to make what is missing: the file, the first row. */
  readonly create: boolean;
  /** Whether to make the folder for the file, too, which has to exist otherwise. */
  readonly makesFolder?: boolean;
}

/**
 * Makes sure that a path can be opened as the file of a KV: there is a folder for it, since a mistyped path is no place
 * for a new store, and no database of another program, which would be changed.
 *
 * @throws {Error} saying what is in the way, or why that cannot be found out.
 */
export async function prepareFile(path: string, { create, makesFolder }: FileOptions): Promise<void> {
  const folder = folderOf(path);
  if (makesFolder) await makeFolder(path);
  else if (create && !(await find(folder))?.isDirectory) {
    throw new Error(`there is no folder ${folder}, and only that of the default KV_PATH is made`);
  }
  const found = await find(path);
  if (!found && create) return;
  if (!found) throw new Error("there is no such file, and only the service makes it when it starts");
  if (found.isDirectory) throw new Error("it is a folder");
  // Opening a pipe would wait for ever.
  if (!found.isFile) throw new Error("it is no file");
  if (found.size === 0 && !create) throw new Error("it is empty");
  const tables = await tablesIn(path);
  // The first that Deno makes in a KV.
  if (tables.length > 0 && !tables.includes("migration_state")) {
    throw new Error("it is the database of another program");
  }
}

function folderOf(path: string): string {
  return path.replace(/[^/\\]*$/, "") || ".";
}

/** What is at a path; undefined if nothing is. */
async function find(path: string): Promise<Deno.FileInfo | undefined> {
  try {
    return await Deno.stat(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) return undefined;
    throw error;
  }
}

/** The names of the tables in a database. Waits a few seconds, inside SQLite, if it is locked. */
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

/** What SQLite knows of the file of a KV. Unlike a row, it is read without waiting. */
export interface FileState {
  /** A number that changes with every commit; undefined if the file is locked or cannot be read. */
  readonly version: () => number | undefined;
  /** How many bytes it has, with what its write-ahead log adds; undefined if it is locked or cannot be read. */
  readonly size: () => number | undefined;
  /** Closes the file. */
  readonly close: () => void;
}

/** The state of a file that exists; undefined if it cannot be read in this way. */
export async function openFileState(path: string): Promise<FileState | undefined> {
  try {
    // Imported here because Deno Deploy has no files, and no use for it.
    const { DatabaseSync } = await import("node:sqlite");
    const database = new DatabaseSync(path, { readOnly: true });
    database.exec("PRAGMA busy_timeout = 0");
    const version = database.prepare("PRAGMA data_version");
    const size = database.prepare(
      "SELECT page_count * page_size AS size FROM pragma_page_count, pragma_page_size",
    );
    return {
      version: () => numberIn(version, "data_version"),
      size: () => numberIn(size, "size"),
      close: () => database.close(),
    };
  } catch {
    return undefined;
  }
}

/** The number in a column that a statement selects; undefined if it cannot be carried out now. */
function numberIn(statement: StatementSync, column: string): number | undefined {
  try {
    const number = statement.get()?.[column];
    return typeof number === "number" ? number : undefined;
  } catch {
    return undefined;
  }
}
