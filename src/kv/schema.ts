import type { Connection } from "./connection.ts";
import { AGAIN, againIfLocked, retried, StoreUnavailable } from "./deadline.ts";
import { decodeJson, encodeJson, type Entry } from "./row.ts";

/** Key of the row that tells of which version all the others are. */
export const SCHEMA: Deno.KvKey = ["schema"];

/** Versions of the rows that a build of the service can work with. */
export interface KnownVersions {
  readonly oldest: number;
  readonly newest: number;
}

/** Those of this build. A migration raises the newest, and the release after it the oldest. */
const KNOWN: KnownVersions = { oldest: 1, newest: 1 };

const FOREIGN = "it holds rows of something else, or of an unreleased version";

/** The rows are of a version that this build does not know, so it writes none; its last commits may have applied. */
export class UnknownSchema extends StoreUnavailable {
  override readonly name = "UnknownSchema";
}

/** The version of the rows, as the row that tells it was seen last. */
export class Schema {
  readonly known: KnownVersions;
  /** Of the rows; the newest that is known where none was seen. */
  version: number;
  /** Resolves when the rows turn out to be of a version that is not known: no more lanes are opened. */
  readonly passed: Promise<UnknownSchema>;
  readonly #pass: (error: UnknownSchema) => void;

  constructor(known: KnownVersions = KNOWN) {
    this.known = known;
    this.version = known.newest;
    ({ promise: this.passed, resolve: this.#pass } = Promise.withResolvers<UnknownSchema>());
  }

  /**
   * Takes note of the row.
   *
   * @throws {UnknownSchema}
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
        : `its rows are of version ${version}, and this service knows version ${newest}`,
    );
    this.#pass(error);
    throw error;
  }
}

/**
 * The version of the rows. A KV without any rows gets the newest that is known, if `create` allows it.
 *
 * @throws {Error} saying why this version of the service cannot read the rows.
 * @throws {StoreUnavailable}
 */
export async function requireSchema(
  connection: Connection,
  create: boolean,
  known: KnownVersions = KNOWN,
): Promise<Schema> {
  const schema = new Schema(known);
  return await retried(async () => {
    // Looked for first: otherwise a row that another process makes meanwhile would pass for something else.
    const [row] = await connection.read((kv) => Array.fromAsync(kv.list({ prefix: [] }, { limit: 1 })));
    const entry = await connection.read((kv) => kv.get(SCHEMA));
    if (entry.versionstamp !== null) {
      schema.note(entry);
      return schema;
    }
    if (row !== undefined) throw new Error(FOREIGN);
    if (!create) {
      throw new Error("it is empty, and only the service makes its first rows when it starts");
    }
    const first = encodeJson({ version: known.newest });
    await connection.write((kv) => kv.atomic().check(entry).set(SCHEMA, first).commit().catch(againIfLocked));
    return AGAIN;
  });
}

/** The version in the row; null where it holds none. */
function versionIn(row: Entry): unknown {
  try {
    return decodeJson<{ version?: unknown }>(row).version;
  } catch {
    return null;
  }
}
