import { MARKERS } from "./abandoned.ts";
import type { Backend } from "./backend.ts";
import { AGAIN, LOCKED, retried, StoreUnavailable } from "./deadline.ts";
import { decodeJson, encodeJson, type Entry, versionstampOf } from "./row.ts";

/**
 * Key of the row with the schema version of all rows; their revision, which rises each time that some of them are
 * rewritten; and the features that are on.
 */
export const SCHEMA: Deno.KvKey = ["schema"];

/** Features of a store that are on, by name. What a number means is up to the code that switches it. */
export type Features = Readonly<Record<string, number>>;

/** What the row has besides the version. */
interface Content {
  readonly revision?: number;
  readonly features?: Features;
}

/** Schema versions that a release supports. */
export interface KnownVersions {
  readonly oldest: number;
  readonly newest: number;
}

/**
 * The versions that this release supports. From version 2 on, rows have a revision, and from version 3 on, features. A
 * store has the oldest version that it can have, so that earlier releases work with it. A release with a migration
 * raises the newest; the release after it raises the oldest.
 */
export const KNOWN: KnownVersions = { oldest: 1, newest: 3 };

const REVISED = "its rows have been rewritten since this process started";
const FOREIGN = "it contains rows from another program, or from an unreleased version";

/**
 * The rows have a version that this release does not know, or another revision than when the process started, so it
 * stops writing. Its last commits might have applied.
 */
export class Superseded extends StoreUnavailable {
  override readonly name = "Superseded";
}

/** What sets rows, such as `Write`. */
interface Setter {
  set(key: Deno.KvKey, value: Uint8Array<ArrayBuffer>): void;
}

/** The version of the rows, as last read. Every commit checks that its row has not changed since. */
export class SchemaVersion {
  /** Version of the rows; the oldest known one until it is read. */
  version: number;
  /** Another object whenever they have changed. */
  features: Features = {};
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
   * Stores the version and the features in the row.
   *
   * @throws {Superseded} if this release does not support that version, or if the row has another revision than before.
   */
  learn(row: Entry | null): void {
    const { oldest, newest } = this.#known;
    const { version, revision = 0, features = {} } = contentOf(row);
    const isKnown = typeof version === "number" && version >= oldest && version <= newest;
    this.#revision ??= revision;
    if (isKnown && revision === this.#revision) {
      this.version = version;
      if (!isSame(features, this.features)) this.features = features;
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
   * Gives the rows the next revision, in a transaction that rewrites some of them: every running process then stops with
   * its next commit.
   */
  revise(write: Setter): void {
    this.#set(write, { revision: (this.#revision ?? 0) + 1, features: this.features });
  }

  /**
   * Switches a feature on or, with 0, off, in a transaction. Every running process then adopts it with its next commit,
   * unless its release does not know features: it stops, as for every version that it does not know.
   */
  switch(name: string, to: number, write: Setter): undefined {
    const { [name]: _, ...others } = this.features;
    this.#set(write, {
      revision: this.#revision ?? 0,
      features: to === 0 ? others : { ...others, [name]: to },
    });
  }

  /** Sets the row, with the oldest version that such rows can have. */
  #set(write: Setter, { revision, features }: Required<Content>): void {
    const hasFeatures = Object.keys(features).length > 0;
    const version = Math.max(this.#known.oldest, hasFeatures ? 3 : revision > 0 ? 2 : 1);
    write.set(
      SCHEMA,
      encodeJson({ version, ...revision > 0 && { revision }, ...hasFeatures && { features } }),
    );
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

/** The content of the row. The version is null if there is no row, or if it is not JSON. */
function contentOf(row: Entry | null): Content & { readonly version?: unknown } {
  try {
    return { ...row ? decodeJson<object>(row) : { version: null } };
  } catch {
    return { version: null };
  }
}

function isSame(features: Features, others: Features): boolean {
  const names = Object.keys(features);
  return names.length === Object.keys(others).length &&
    names.every((name) => features[name] === others[name]);
}
