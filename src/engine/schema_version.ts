import { MARKERS } from "./abandoned.ts";
import type { Backend } from "./backend.ts";
import { AGAIN, LOCKED, retried, StoreUnavailable } from "./deadline.ts";
import { decodeJson, encodeJson, type Entry, versionstampOf } from "./row.ts";

/**
 * Key of the row with the schema version of all rows and, once some of them have been rewritten, their revision, which
 * rises each time.
 */
export const SCHEMA: Deno.KvKey = ["schema"];

/** Schema versions that a release supports. */
export interface KnownVersions {
  readonly oldest: number;
  readonly newest: number;
}

/**
 * The versions that this release supports. In version 2, rows have a revision. A release with a migration raises the
 * newest; the release after it raises the oldest.
 */
export const KNOWN: KnownVersions = { oldest: 1, newest: 2 };

const REVISED = "its rows have been rewritten since this process started";
const FOREIGN = "it contains rows from another program, or from an unreleased version";

/**
 * The rows have a version that this release does not know, or another revision than when the process started, so it
 * stops writing. Its last commits might have applied.
 */
export class Superseded extends StoreUnavailable {
  override readonly name = "Superseded";
}

/** The version of the rows, as last read. Every commit checks that its row has not changed since. */
export class SchemaVersion {
  /** Version of the rows; the oldest known one until it is read. */
  version: number;
  /** Resolves when the rows have an unknown version or another revision. After that, nothing is committed. */
  readonly superseded: Promise<Superseded>;
  readonly #known: KnownVersions;
  readonly #supersede: (error: Superseded) => void;
  #versionstamp: string | null = null;
  /** The revision of the rows when they were first read. */
  #revision: number | undefined;
  #error: Superseded | undefined;

  constructor(known: KnownVersions = KNOWN) {
    this.#known = known;
    this.version = known.oldest;
    ({ promise: this.superseded, resolve: this.#supersede } = Promise.withResolvers<Superseded>());
  }

  /**
   * The check that every commit makes.
   *
   * @throws {Superseded}
   */
  get check(): Deno.AtomicCheck {
    if (this.#error) throw this.#error;
    return { key: SCHEMA, versionstamp: this.#versionstamp };
  }

  /**
   * Stores the version in the row.
   *
   * @throws {Superseded} if this release does not support that version, or if the row has another revision than before.
   */
  learn(row: Entry | null): void {
    const { oldest, newest } = this.#known;
    const { version, revision = 0 } = contentOf(row);
    const isKnown = typeof version === "number" && version >= oldest && version <= newest;
    this.#revision ??= revision;
    if (isKnown && revision === this.#revision) {
      this.version = version;
      this.#versionstamp = versionstampOf(row);
      return;
    }
    this.#error = new Superseded(
      isKnown
        ? REVISED
        : version === null
        ? FOREIGN
        : `its rows have version ${version}, but this service expects version ${newest}`,
    );
    this.#supersede(this.#error);
    throw this.#error;
  }

  /**
   * Gives the rows the newest version and the next revision, in a transaction that rewrites some of them: every running
   * process then stops with its next commit.
   */
  revise(write: { set(key: Deno.KvKey, value: Uint8Array<ArrayBuffer>): void }): void {
    write.set(SCHEMA, encodeJson({ version: this.#known.newest, revision: (this.#revision ?? 0) + 1 }));
  }
}

/** Ranges of all rows that do not belong to the backend. Another process may set those before the schema version. */
const ROWS = [{ start: [], end: [MARKERS] }, { start: [MARKERS, "~"], end: [true, true] }] as const;

/**
 * Reads the version of the rows. An empty KV gets the oldest known version, which earlier releases know, too, if `create`
 * is true.
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
      schema.learn(row);
      return schema;
    }
    if (rows.flat().length > 0) throw new Error(FOREIGN);
    if (!create) {
      throw new Error("it is empty, and only the service creates its first rows when it starts");
    }
    const first = encodeJson({ version: known.oldest });
    const { check } = schema;
    await backend.commit((operation) => operation.set(SCHEMA, first), [check]);
    return AGAIN;
  }, LOCKED);
}

/** The version and the revision in the row. The version is null if there is no row, or if it is not JSON. */
function contentOf(row: Entry | null): { readonly version?: unknown; readonly revision?: number } {
  try {
    return { ...row ? decodeJson<object>(row) : { version: null } };
  } catch {
    return { version: null };
  }
}
