import type { Connection } from "./connection.ts";
import { AGAIN, againIfLocked, LOCKED, retried, StoreUnavailable } from "./deadline.ts";
import { decodeJson, encodeJson, type Entry } from "./row.ts";

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
const KNOWN: KnownVersions = { oldest: 1, newest: 1 };

const FOREIGN = "it contains rows from another program, or from an unreleased version";

/** This release does not know the version of the rows, so it stops writing. Its last commits might have applied. */
export class UnknownSchema extends StoreUnavailable {
  override readonly name = "UnknownSchema";
}

/** The version of the rows, as last read. */
export class SchemaVersion {
  readonly known: KnownVersions;
  /** Version of the rows; the newest known one until it is read. */
  version: number;
  /** Resolves when the rows have an unknown version. After that, no lane is opened. */
  readonly superseded: Promise<UnknownSchema>;
  readonly #supersede: (error: UnknownSchema) => void;

  constructor(known: KnownVersions = KNOWN) {
    this.known = known;
    this.version = known.newest;
    ({ promise: this.superseded, resolve: this.#supersede } = Promise.withResolvers<UnknownSchema>());
  }

  /**
   * Stores the version in the row.
   *
   * @throws {UnknownSchema} if this release does not support that version.
   */
  note(row: Entry | null): void {
    const { oldest, newest } = this.known;
    const version = row === null ? this.version : versionIn(row);
    if (typeof version === "number" && version >= oldest && version <= newest) {
      this.version = version;
      return;
    }
    const error = new UnknownSchema(
      version === null
        ? FOREIGN
        : `its rows have version ${version}, but this service expects version ${newest}`,
    );
    this.#supersede(error);
    throw error;
  }
}

/**
 * Reads the version of the rows. An empty KV gets the newest known version if `create` is true.
 *
 * @throws {Error} with the reason, if this release cannot read the rows.
 * @throws {StoreUnavailable}
 */
export async function requireSchema(
  connection: Connection,
  create: boolean,
  known: KnownVersions = KNOWN,
): Promise<SchemaVersion> {
  const schema = new SchemaVersion(known);
  return await retried(async () => {
    // Read before SCHEMA. In the reverse order, rows that another process creates in between would look foreign.
    const [row] = await connection.read((kv) => Array.fromAsync(kv.list({ prefix: [] }, { limit: 1 })));
    const entry = await connection.read((kv) => kv.get(SCHEMA));
    if (entry.versionstamp !== null) {
      schema.note(entry);
      return schema;
    }
    if (row !== undefined) throw new Error(FOREIGN);
    if (!create) {
      throw new Error("it is empty, and only the service creates its first rows when it starts");
    }
    const first = encodeJson({ version: known.newest });
    await connection.write((kv) => kv.atomic().check(entry).set(SCHEMA, first).commit().catch(againIfLocked));
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
