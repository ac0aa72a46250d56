import { pause } from "../../src/kv/retried.ts";

/** What a commit resolves to. */
export type CommitResult = Deno.KvCommitResult | Deno.KvCommitError;

/** A commit on its way to the KV. */
export interface Commit {
  /** Carries it out, once more at each call. */
  readonly apply: () => Promise<CommitResult>;
  readonly checks: number;
  readonly keys: readonly Deno.KvKey[];
}

/** What comes between a store and its KV. */
export interface Disturbance {
  /** Comes before a read of these keys, or of a range (then without keys). */
  readonly read?: (keys: readonly Deno.KvKey[]) => Promise<void> | void;
  /** Comes in place of a commit. */
  readonly commit?: (commit: Commit) => Promise<CommitResult>;
}

/** The KV as it looks to somebody whose reads and commits are disturbed. */
export function disturbed(kv: Deno.Kv, { read = () => {}, commit = carryOut }: Disturbance): Deno.Kv {
  async function* list(selector: Deno.KvListSelector, options: Deno.KvListOptions) {
    await read([]);
    yield* kv.list(selector, options);
  }
  const methods = new Map<string | symbol, unknown>([
    ["get", async (key: Deno.KvKey) => (await read([key]), await kv.get(key))],
    ["getMany", async (keys: Deno.KvKey[]) => (await read(keys), await kv.getMany(keys))],
    ["list", list],
    ["atomic", () => disturbedOperation(kv.atomic(), commit)],
    ["close", () => kv.close()],
  ]);
  return new Proxy(kv, { get: (_, name) => methods.get(name) });
}

/** Lets a commit through. */
export function carryOut({ apply }: Commit): Promise<CommitResult> {
  return apply();
}

/** Lets a commit through that takes a while. */
export async function slowly({ apply }: Commit): Promise<CommitResult> {
  await pause(20);
  return await apply();
}

/** What SQLite says of a commit while another process holds the file: it was not applied. */
export function locked(): Promise<never> {
  return Promise.reject(new TypeError("database is locked: Error code 5: The database file is locked"));
}

/** What SQLite says when the disk fails. */
export function fail(): Promise<never> {
  return Promise.reject(new TypeError("disk I/O error: /secret/animals.kv"));
}

/** What never comes to an end. */
export function hang(): Promise<never> {
  return new Promise(() => {});
}

function disturbedOperation(
  operation: Deno.AtomicOperation,
  commit: (commit: Commit) => Promise<CommitResult>,
): Deno.AtomicOperation {
  const { check, set, commit: apply } = operation;
  const keys: Deno.KvKey[] = [];
  let checks = 0;
  operation.check = (...given) => {
    checks += given.length;
    return check.apply(operation, given);
  };
  operation.set = (key, ...value) => {
    keys.push(key);
    return set.call(operation, key, ...value);
  };
  operation.commit = () => commit({ apply: () => apply.call(operation), checks, keys });
  return operation;
}
