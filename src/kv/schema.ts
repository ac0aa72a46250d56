import type { Connection } from "./connection.ts";
import { AGAIN, againIfLocked, retried } from "./retried.ts";
import { CorruptRow, decodeJson, encodeJson } from "./row.ts";

const KEY = ["schema"];
/** Raised if an older service could not read the rows any more; the version that raises it converts the older rows. */
const VERSION = 1;

/**
 * Makes sure that this version of the service can read the rows. A KV without any rows gets its first, if `create`
 * allows it.
 *
 * @throws {Error} saying why this version of the service cannot read the rows.
 * @throws {StoreUnavailable}
 */
export async function requireSchema(connection: Connection, create: boolean): Promise<void> {
  const version = await retried(async () => {
    // Looked for first: otherwise a row that another process makes meanwhile would pass for something else.
    const [row] = await connection.read((kv) => Array.fromAsync(kv.list({ prefix: [] }, { limit: 1 })));
    const entry = await connection.read((kv) => kv.get(KEY));
    if (entry.versionstamp !== null) return versionIn(entry);
    if (row !== undefined) return 0;
    if (!create) {
      throw new Error("it is empty, and only the service makes its first rows when it starts");
    }
    await connection.write((kv) =>
      kv.atomic().check(entry).set(KEY, encodeJson({ version: VERSION })).commit().catch(againIfLocked)
    );
    return AGAIN;
  });
  if (version === 0) throw new Error("it holds rows of something else, or of an unreleased version");
  if (version !== VERSION) {
    throw new Error(`its rows are of version ${version}, and this service knows version ${VERSION}`);
  }
}

function versionIn(entry: Deno.KvEntry<unknown>): unknown {
  try {
    return decodeJson<{ version?: unknown }>(entry).version;
  } catch (error) {
    if (error instanceof CorruptRow) return 0;
    throw error;
  }
}
