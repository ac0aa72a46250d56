/** A number that changes with every commit to an SQLite file; unlike a row, it is read without waiting. */
export class DataVersion {
  readonly #query: () => unknown;
  /** Lets go of the file. */
  readonly close: () => void;

  private constructor(query: () => unknown, close: () => void) {
    this.#query = query;
    this.close = close;
  }

  /** Opens a file that is there already; undefined where that cannot be done in this way. */
  static async open(path: string): Promise<DataVersion | undefined> {
    try {
      // Only where it is needed: Deno Deploy has no files.
      const { DatabaseSync } = await import("node:sqlite");
      const database = new DatabaseSync(path, { readOnly: true });
      database.exec("PRAGMA busy_timeout = 0");
      const statement = database.prepare("PRAGMA data_version");
      return new DataVersion(() => statement.get()?.data_version, () => database.close());
    } catch {
      return undefined;
    }
  }

  /** The number now; undefined where the file is locked or cannot be read. */
  read(): number | undefined {
    try {
      const version = this.#query();
      return typeof version === "number" ? version : undefined;
    } catch {
      return undefined;
    }
  }
}
