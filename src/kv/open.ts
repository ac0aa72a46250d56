import { KV_DEADLINE, StoreUnavailable, withDeadline } from "./deadline.ts";
import { retried } from "./retry.ts";
import { Store, unlessLocked } from "./store.ts";

/** The KV could not be opened; the message says why, for the operator. */
export class OpenError extends Error {
  override readonly name = "OpenError";
}

/** The path of a KV that lives in this process's memory and is gone with it. */
export const MEMORY = ":memory:";

const PORTABLE_CHECKS = 10;
const LOCAL_CHECKS = 100;

/**
 * Opens a store on a file (made with its folder when missing), on `:memory:`, on a KV Connect server's
 * URL, or without a path on Deno Deploy's KV.
 *
 * @throws {OpenError}
 */
export async function openStore(path: string | undefined): Promise<Store> {
  const local = path !== undefined && !isUrl(path);
  if (local && path !== MEMORY) await makeFolder(path);
  const maxChecks = local ? LOCAL_CHECKS : PORTABLE_CHECKS;
  try {
    return await usable(new Store(await openKv(path), { maxChecks }));
  } catch (error) {
    const name = nameOf(path);
    throw new OpenError(`The KV ${name} cannot be used: ${reason(error).replaceAll(path ?? name, name)}.`);
  }
}

/** Finds out now whether the KV answers and can be written, rather than at the first request. */
async function usable(store: Store): Promise<Store> {
  try {
    await store.probe();
    return store;
  } catch (error) {
    store[Symbol.dispose]();
    throw error;
  }
}

async function makeFolder(path: string): Promise<void> {
  const folder = path.replace(/[^/\\]*$/, "") || ".";
  try {
    await Deno.mkdir(folder, { recursive: true });
  } catch (error) {
    throw new OpenError(`The folder ${folder} cannot be made: ${reason(error)}.`);
  }
}

async function openKv(path: string | undefined): Promise<Deno.Kv> {
  // Another process that opens the same file for the first time locks it for a moment.
  const opening = retried(() => Deno.openKv(path).catch(unlessLocked));
  try {
    return await withDeadline(opening, KV_DEADLINE);
  } catch (error) {
    opening.then((kv) => kv.close(), () => {});
    throw error;
  }
}

/** What to call the KV in a message; a URL may hold a password. */
function nameOf(path: string | undefined): string {
  if (path === undefined) return "of this deployment";
  return isUrl(path) ? new URL(path).host : path;
}

/** Whether the path of a KV is the URL of a KV Connect server. */
export function isUrl(path: string): boolean {
  return /^https?:/.test(path) && URL.canParse(path);
}

function reason(error: unknown): string {
  const cause = error instanceof StoreUnavailable && error.cause ? error.cause : error;
  return cause instanceof Error ? cause.message.split("\n")[0] ?? cause.name : typeof cause;
}
