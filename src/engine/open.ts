import type { Backend, BackendOptions, Patience } from "./backend.ts";
import { StoreUnavailable } from "./deadline.ts";
import { FileBackend, type FileOptions } from "./file.ts";
import { openRemote } from "./remote/open.ts";
import { requireSchema } from "./schema_version.ts";
import { Store } from "./store.ts";

/** The KV could not be opened. The message says why. */
export class OpenError extends Error {
  override readonly name = "OpenError";
}

/** Options of {@linkcode openStore}. */
export interface OpenOptions extends FileOptions, BackendOptions {
  /** How long to wait for a server that has not started yet; by default not at all. */
  readonly patience?: Patience;
}

/** Opens a KV server or Deploy's KV. To do without it, remove its import, its name here, and its folder. */
const REMOTE: readonly Open[] = [openRemote];

type Open = (path: string | undefined, options: OpenOptions) => Promise<Backend>;

/**
 * Opens a store. The path is a file, `:memory:` or the URL of a KV Connect server; undefined opens Deno Deploy's KV.
 * Checks that the rows have a schema version that this release knows, and that they can be written.
 *
 * @throws {OpenError} if the store cannot be used.
 */
export async function openStore(path: string | undefined, options: OpenOptions): Promise<Store> {
  const { metrics, create } = options;
  let backend: Backend | undefined;
  try {
    backend = await openBackend(path, options);
    const schema = await requireSchema(backend, create);
    const store = new Store(backend, { schema, metrics });
    await store.probe();
    return store;
  } catch (error) {
    await backend?.close();
    if (error instanceof OpenError) throw error;
    throw new OpenError(`The KV ${nameOfKv(path)} cannot be used: ${reason(error)}.`);
  }
}

function openBackend(path: string | undefined, options: OpenOptions): Promise<Backend> {
  if (path !== undefined && !isUrl(path)) return FileBackend.open(path, options);
  const [open] = REMOTE;
  if (!open) throw new OpenError("This copy cannot use a KV server: src/engine/remote is missing.");
  return open(path, options);
}

/**
 * Requires that a KV file has rows of a schema version that this release knows.
 *
 * @throws {Error} with the reason, if this release cannot read them.
 */
export async function requireReadable(path: string): Promise<void> {
  using kv = await Deno.openKv(path);
  await requireSchema(new FileBackend(kv, { clock: Date.now }), false);
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
