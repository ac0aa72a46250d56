import type { StatementSync } from "node:sqlite";

/** A number that changes with every commit to an SQLite file; unlike a row, it is read without waiting. */
export interface DataVersion {
  /** The number now; undefined where the file is locked or cannot be read. */
  readonly read: () => number | undefined;
  /** Lets go of the file. */
  readonly close: () => void;
}

/** That of a file which is there already; undefined where it cannot be read in this way. */
export async function openDataVersion(path: string): Promise<DataVersion | undefined> {
  try {
    // Only where it is needed: Deno Deploy has no files.
    const { DatabaseSync } = await import("node:sqlite");
    const database = new DatabaseSync(path, { readOnly: true });
    database.exec("PRAGMA busy_timeout = 0");
    const statement = database.prepare("PRAGMA data_version");
    return { read: () => versionIn(statement), close: () => database.close() };
  } catch {
    return undefined;
  }
}

function versionIn(statement: StatementSync): number | undefined {
  try {
    const version = statement.get()?.data_version;
    return typeof version === "number" ? version : undefined;
  } catch {
    return undefined;
  }
}
