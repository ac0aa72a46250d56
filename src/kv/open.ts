import type { Metrics } from "../metrics/metrics.ts";
import { Connection } from "./connection.ts";
import { DeadlineExceeded, KV_DEADLINE, StoreUnavailable, withDeadline } from "./deadline.ts";
import { makeFolder, openFileState, requireFile, requireFolder, requireOwn } from "./file.ts";
import { answering, openAll, reopener } from "./reopen.ts";
import { againIfLocked, retried } from "./retried.ts";
import { requireSchema } from "./schema.ts";
import { PORTABLE_CHECKS, Store } from "./store.ts";

/** The KV could not be opened; the message says why, for the operator. */
export class OpenError extends Error {
  override readonly name = "OpenError";
}

/** How to open a KV. */
export interface OpenOptions {
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** Whether to make what is missing: the file, the first row. */
  readonly create: boolean;
  /** Whether to make the folder for the file, too, which has to exist otherwise. */
  readonly makesFolder?: boolean;
  readonly metrics?: Metrics;
  /** How long to wait for a server that is not up yet, in ms, and what to call once when it has to wait. */
  readonly patience?: { readonly ms: number; readonly onWait: (host: string) => void };
}

/** The path of a KV that lives in this process's memory and is gone with it. */
export const MEMORY = ":memory:";

const LOCAL_CHECKS = 100;
const SERVER_HANDLES = 12;
const OPENING_TRIES = 3;
const WAIT_NOTICE = 1_000;

/**
 * Opens a store on a file, on `:memory:`, on a KV Connect server's URL, or without a path on Deno Deploy's KV.
 *
 * @throws {OpenError}
 */
export async function openStore(path: string | undefined, options: OpenOptions): Promise<Store> {
  const server = path !== undefined && isUrl(path);
  try {
    const connection = server ? await openServer(path, options) : await openLocal(path, options);
    const maxChecks = server || path === undefined ? PORTABLE_CHECKS : LOCAL_CHECKS;
    return await usable(connection, new Store(connection, { maxChecks, clock: options.clock }), options);
  } catch (error) {
    throw new OpenError(`The KV ${nameOfKv(path)} cannot be used: ${withoutPath(reason(error), path)}.`);
  }
}

/** Finds out now whether the KV holds the right rows and can be written, rather than at the first request. */
async function usable(connection: Connection, store: Store, { create }: OpenOptions): Promise<Store> {
  try {
    await requireSchema(connection, create);
    await store.probe();
    return store;
  } catch (error) {
    await connection.close();
    throw error;
  }
}

async function openServer(url: string, { patience, metrics }: OpenOptions): Promise<Connection> {
  if (patience) {
    const timer = setTimeout(() => patience.onWait(nameOfKv(url)), WAIT_NOTICE);
    try {
      await answering(url, AbortSignal.timeout(patience.ms));
    } catch {
      throw new StoreUnavailable(`it did not answer for ${patience.ms / 1000} s`);
    } finally {
      clearTimeout(timer);
    }
  }
  const kvs = await openAll(SERVER_HANDLES, () => openPersistently(url));
  return new Connection(kvs, { reopen: reopener(url, SERVER_HANDLES), metrics });
}

async function openLocal(
  path: string | undefined,
  { create, makesFolder = false, metrics }: OpenOptions,
): Promise<Connection> {
  // What is in memory belongs to one handle.
  if (path === undefined || path === MEMORY) return new Connection([await openKv(path)], { metrics });
  if (makesFolder) await makeFolder(path);
  await (create ? requireFolder(path) : requireFile(path));
  await requireOwn(path);
  const kvs = [await openKv(path), await openKv(path)];
  return new Connection(kvs, { file: await openFileState(path), metrics });
}

async function openKv(path: string | undefined): Promise<Deno.Kv> {
  // Another process that opens the same file for the first time locks it for a moment.
  const opening = retried(() => Deno.openKv(path).catch(againIfLocked));
  try {
    return await withDeadline(opening, KV_DEADLINE);
  } catch (error) {
    opening.then((kv) => kv.close(), () => {});
    throw error;
  }
}

/** Tries again where an opening fails at once: unlike later ones, its requests are not repeated by Deno. */
async function openPersistently(url: string, tries: number = OPENING_TRIES): Promise<Deno.Kv> {
  try {
    return await openKv(url);
  } catch (error) {
    if (tries === 1 || error instanceof DeadlineExceeded) throw error;
    return await openPersistently(url, tries - 1);
  }
}

/** What to call the KV of a path in a message; a URL may hold a password. */
export function nameOfKv(path: string | undefined): string {
  if (path === undefined) return "of this deployment";
  return isUrl(path) ? new URL(path).host : path;
}

/** A message without its last full stop and without the path, however that is spelled. */
function withoutPath(message: string, path: string | undefined): string {
  const spellings = path === undefined ? [] : [path, ...(isUrl(path) ? [new URL(path).href] : [])];
  return spellings.reduce((text, spelling) => text.replaceAll(spelling, nameOfKv(path)), message)
    .replace(/\.$/, "");
}

/** Whether the path of a KV is the URL of a KV Connect server. */
export function isUrl(path: string): boolean {
  return /^https?:/.test(path) && URL.canParse(path);
}

function reason(error: unknown): string {
  const cause = error instanceof StoreUnavailable && error.cause ? error.cause : error;
  return cause instanceof Error ? cause.message.split("\n")[0] ?? cause.name : typeof cause;
}
