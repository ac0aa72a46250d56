import type { Metrics } from "../base/metrics.ts";
import { Connection, openKv, openServer, type Patience } from "./connection.ts";
import { StoreUnavailable } from "./deadline.ts";
import { type FileOptions, openFileState, prepareFile } from "./file.ts";
import { requireSchema } from "./schema_version.ts";
import { PORTABLE_CHECKS, Store } from "./store.ts";

/** The KV could not be opened. The message, which is for the operator, says why. */
export class OpenError extends Error {
  override readonly name = "OpenError";
}

/** Options of {@linkcode openStore}. */
export interface OpenOptions extends FileOptions {
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** How long to wait for a server that has not started yet; by default not at all. */
  readonly patience?: Patience;
  readonly metrics?: Metrics;
}

/** The path for a KV in this process's memory. */
export const MEMORY = ":memory:";

const LOCAL_CHECKS = 100;

/**
 * Opens a store. The path is a file, `:memory:` or the URL of a KV Connect server; undefined opens Deno Deploy's KV.
 * Checks that the rows belong to this service and can be written.
 *
 * @throws {OpenError} if the store cannot be used.
 */
export async function openStore(path: string | undefined, options: OpenOptions): Promise<Store> {
  const maxChecks = path === undefined || isUrl(path) ? PORTABLE_CHECKS : LOCAL_CHECKS;
  const { clock, metrics, create } = options;
  let connection: Connection | undefined;
  try {
    connection = await connect(path, options);
    const schema = await requireSchema(connection, create);
    const store = new Store(connection, { maxChecks, clock, metrics, schema });
    await store.probe();
    return store;
  } catch (error) {
    await connection?.close();
    throw new OpenError(`The KV ${nameOfKv(path)} cannot be used: ${reason(error)}.`);
  }
}

async function connect(path: string | undefined, options: OpenOptions): Promise<Connection> {
  const { patience, metrics } = options;
  // A KV in memory is visible through only one handle.
  if (path === undefined || path === MEMORY) return new Connection([await openKv(path)], { metrics });
  if (isUrl(path)) return await openServer(path, patience, metrics);
  await prepareFile(path, options);
  const kvs = [await openKv(path), await openKv(path)];
  return new Connection(kvs, { file: await openFileState(path), metrics });
}

/** How a message names the KV. A URL is reduced to its host, because it might contain a password. */
export function nameOfKv(path: string | undefined): string {
  if (path === undefined) return "of this deployment";
  return isUrl(path) ? new URL(path).host : path;
}

/** Whether the path of a KV is the URL of a KV Connect server. */
export function isUrl(path: string): boolean {
  return /^https?:/.test(path) && URL.canParse(path);
}

/**
 * The reason for an error, without a full stop. KV's own message can have many lines, so only its first line is used.
 */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return (error instanceof StoreUnavailable ? error.logReason : error.message).replace(/\.$/, "");
}
