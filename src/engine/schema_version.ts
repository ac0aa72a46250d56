import { COMMITS } from "./abandoned.ts";
import type { Backend } from "./backend.ts";
import { AGAIN, LOCKED, retried, StoreUnavailable } from "./deadline.ts";
import { decodeJson, encodeJson, type Entry, versionstampOf } from "./row.ts";

/** Key of the row with the schema version of all rows. */
export const SCHEMA: Deno.KvKey = ["schema"];

/** Schema versions that a release supports. */
export interface KnownVersions {
  readonly oldest: number;
  readonly newest: number;
}

/**
 * The versions that this release supports. A release with a migration raises the newest; the release after it raises
 * the oldest.
 */
export const KNOWN: KnownVersions = { oldest: 1, newest: 1 };

const FOREIGN = "it contains rows from another program, or from an unreleased version";

/** This release does not know the version of the rows, so it stops writing. Its last commits might have applied. */
export class UnknownSchema extends StoreUnavailable {
  override readonly name = "UnknownSchema";
}

/** The version of the rows, as last read. Every commit checks that its row has not changed since. */
export class SchemaVersion {
  /** Version of the rows; the newest known one until it is read. */
  version: number;
  /** Resolves when the rows have an unknown version. After that, nothing is committed. */
  readonly superseded: Promise<UnknownSchema>;
  readonly #known: KnownVersions;
  readonly #supersede: (error: UnknownSchema) => void;
  #versionstamp: string | null = null;
  #error: UnknownSchema | undefined;

  constructor(known: KnownVersions = KNOWN) {
    this.#known = known;
    this.version = known.newest;
    ({ promise: this.superseded, resolve: this.#supersede } = Promise.withResolvers<UnknownSchema>());
  }

  /**
   * The check that every commit makes.
   *
   * @throws {UnknownSchema} if the rows have an unknown version.
   */
  get check(): Deno.AtomicCheck {
    if (this.#error) throw this.#error;
    return { key: SCHEMA, versionstamp: this.#versionstamp };
  }

  /**
   * Stores the version in the row.
   *
   * @throws {UnknownSchema} if this release does not support that version.
   */
  note(row: Entry | null): void {
    const { oldest, newest } = this.#known;
    const version = row && versionIn(row);
    if (typeof version === "number" && version >= oldest && version <= newest) {
      this.version = version;
      this.#versionstamp = versionstampOf(row);
      return;
    }
    this.#error = new UnknownSchema(
      version === null
        ? FOREIGN
        : `its rows have version ${version}, but this service expects version ${newest}`,
    );
    this.#supersede(this.#error);
    throw this.#error;
  }
}

/** Ranges of all rows that do not belong to the backend. Another process may set those before the schema version. */
const ROWS = [{ start: [], end: [COMMITS] }, { start: [COMMITS, "~"], end: [true, true] }] as const;

/**
 * Reads the version of the rows. An empty KV gets the newest known version if `create` is true.
 *
 * @throws {Error} with the reason, if this release cannot read the rows.
 * @throws {StoreUnavailable}
 */
export async function requireSchema(
  backend: Backend,
  create: boolean,
  known: KnownVersions = KNOWN,
): Promise<SchemaVersion> {
  const schema = new SchemaVersion(known);
  return await retried(async () => {
    // Read before SCHEMA. In the reverse order, rows that another process creates in between would look foreign.
    const rows = await Promise.all(ROWS.map((range) => backend.list(range, 1)));
    const [row = null] = await backend.getMany([SCHEMA]);
    if (row !== null) {
      schema.note(row);
      return schema;
    }
    if (rows.flat().length > 0) throw new Error(FOREIGN);
    if (!create) {
      throw new Error("it is empty, and only the service creates its first rows when it starts");
    }
    const first = encodeJson({ version: known.newest });
    const { check } = schema;
    await backend.commit((operation) => operation.set(SCHEMA, first), [check]);
    return AGAIN;
  }, LOCKED);
}

/** The version in the row; null if it is not JSON. */
function versionIn(row: Entry): unknown {
  try {
    return decodeJson<{ version?: unknown }>(row).version;
  } catch {
    return null;
  }
}
