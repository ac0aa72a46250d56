import type { Metrics } from "../metrics/metrics.ts";
import { Connection, openKv, openServer, type Patience } from "./connection.ts";
import { StoreUnavailable } from "./deadline.ts";
import { type FileOptions, openFileState, prepareFile } from "./file.ts";
import { requireSchema } from "./schema.ts";
import { PORTABLE_CHECKS, Store } from "./store.ts";

/** The KV could not be opened; the message says why, for the operator. */
export class OpenError extends Error {
  override readonly name = "OpenError";
}

/** How to open a KV. */
export interface OpenOptions extends FileOptions {
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** Given if a server may not be up yet. */
  readonly patience?: Patience;
  readonly metrics?: Metrics;
}

/** The path of a KV that lives in this process's memory and is gone with it. */
export const MEMORY = ":memory:";

const LOCAL_CHECKS = 100;

/**
 * Opens a store on a file, on `:memory:`, on a KV Connect server's URL, or without a path on Deno Deploy's KV. Makes
 * sure now that it holds the right rows and can be written, rather than at the first request.
 *
 * @throws {OpenError}
 */
export async function openStore(path: string | undefined, options: OpenOptions): Promise<Store> {
  const maxChecks = path === undefined || isUrl(path) ? PORTABLE_CHECKS : LOCAL_CHECKS;
  let connection: Connection | undefined;
  try {
    connection = await connect(path, options);
    const schema = await requireSchema(connection, options.create);
    const store = new Store(connection, { maxChecks, clock: options.clock, schema });
    await store.probe();
    return store;
  } catch (error) {
    await connection?.close();
    throw new OpenError(`The KV ${nameOfKv(path)} cannot be used: ${reason(error)}.`);
  }
}

async function connect(path: string | undefined, options: OpenOptions): Promise<Connection> {
  const { patience, metrics } = options;
  // What is in memory belongs to one handle.
  if (path === undefined || path === MEMORY) return new Connection([await openKv(path)], { metrics });
  if (isUrl(path)) return await openServer(path, patience, metrics);
  await prepareFile(path, options);
  const kvs = [await openKv(path), await openKv(path)];
  return new Connection(kvs, { file: await openFileState(path), metrics });
}

/** What to call the KV of a path in a message; a URL may hold a password. */
export function nameOfKv(path: string | undefined): string {
  if (path === undefined) return "of this deployment";
  return isUrl(path) ? new URL(path).host : path;
}

/** Whether the path of a KV is the URL of a KV Connect server. */
export function isUrl(path: string): boolean {
  return /^https?:/.test(path) && URL.canParse(path);
}

/** What a message says of an error, without a full stop; what KV itself says may go on for many lines. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return (error instanceof StoreUnavailable ? error.logReason : error.message).replace(/\.$/, "");
}
