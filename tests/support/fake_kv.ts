// A KV in memory, and a wrapper of any KV whose reads and commits hang, fail, or apply late or twice.
import { pause } from "../../src/base/time.ts";
import type { BackendOptions } from "../../src/engine/backend.ts";
import { FileBackend } from "../../src/engine/file.ts";

/** The result of a commit. */
export type CommitResult = Deno.KvCommitResult | Deno.KvCommitError;

/** The network between a process and the KV. */
export interface Network {
  /** Called before a read. */
  read(): Promise<void>;
  /** Replaces a commit that sets these values. Each call of `apply` applies it. */
  commit(apply: () => CommitResult, values: readonly unknown[]): Promise<CommitResult>;
}

/** Stands for the commit's versionstamp in a key. */
const STAMP: unique symbol = Symbol("versionstamp");

/** A network without latency or failures. */
export function calmNetwork(): Network {
  return { read: () => Promise.resolve(), commit: (apply) => Promise.resolve(apply()) };
}

interface Row {
  readonly key: Deno.KvKey;
  readonly value: unknown;
  readonly versionstamp: string;
}

/** A KV that several processes share, each over its own network, without any I/O. */
export class FakeKv {
  /** Rows by a string for their key. */
  readonly rows: Map<string, Row> = new Map();
  /** One function per applied commit, which applies it again. */
  readonly repetitions: (() => CommitResult)[] = [];
  #version = 0;

  /** Returns a handle for a process, over a network whose methods a test can replace at any time. */
  connect(network: Network = calmNetwork()): Deno.Kv {
    // Each read returns new objects: transactions assume that rows with the same identity were read together.
    const get = (key: Deno.KvKey) => ({
      ...this.rows.get(nameOf(key)) ?? { key, value: null, versionstamp: null },
    });
    return Object.assign(Object.create(Deno.Kv.prototype), {
      async get(key: Deno.KvKey) {
        await network.read();
        return get(key);
      },
      async getMany(keys: Deno.KvKey[]) {
        await network.read();
        return keys.map(get);
      },
      list: (selector: Deno.KvListSelector, options: Deno.KvListOptions) =>
        this.#list(network, selector, options),
      atomic: () => this.#atomic(network),
      commitVersionstamp: () => STAMP,
      close() {},
    });
  }

  /** The value of a row. */
  value(...key: Deno.KvKey): unknown {
    return this.rows.get(nameOf(key))?.value;
  }

  async *#list(
    network: Network,
    selector: Deno.KvListSelector,
    { limit = Infinity, reverse = false }: Deno.KvListOptions = {},
  ) {
    await network.read();
    const selected = [...this.rows.values()].filter(({ key }) => isSelected(key, selector));
    const sorted = selected.sort((one, other) => compareKeys(one.key, other.key));
    if (reverse) sorted.reverse();
    yield* sorted.slice(0, limit).map((row) => ({ ...row }));
  }

  #atomic(network: Network): unknown {
    const checks: Deno.AtomicCheck[] = [];
    const values: unknown[] = [];
    const changes: (readonly [key: Deno.KvKey, change: (before: unknown) => unknown])[] = [];
    const apply = (): CommitResult => {
      const holds = checks.every(({ key, versionstamp }) =>
        (this.rows.get(nameOf(key))?.versionstamp ?? null) === versionstamp
      );
      if (!holds) return { ok: false };
      const versionstamp = `${++this.#version}`.padStart(20, "0");
      for (const [given, change] of changes) {
        const key = given.map((part) => part === STAMP ? versionstamp : part);
        const value = change(this.value(...key));
        if (value === undefined) this.rows.delete(nameOf(key));
        else this.rows.set(nameOf(key), { key, value, versionstamp });
      }
      this.repetitions.push(apply);
      return { ok: true, versionstamp };
    };
    const operation = {
      check(...given: Deno.AtomicCheck[]) {
        checks.push(...given.map((check) => ({ ...check })));
        return operation;
      },
      set(key: Deno.KvKey, value: unknown) {
        values.push(value);
        changes.push([key, () => value]);
        return operation;
      },
      delete(key: Deno.KvKey) {
        changes.push([key, () => undefined]);
        return operation;
      },
      sum(key: Deno.KvKey, count: bigint) {
        changes.push([key, (before) => sumOf(before, count)]);
        return operation;
      },
      commit: () => network.commit(apply, values),
    };
    return operation;
  }
}

/** Adds to a sum. Like KV, throws only after the earlier changes of the commit have been stored. */
function sumOf(before: unknown, count: bigint): Deno.KvU64 {
  if (before !== undefined && !(before instanceof Deno.KvU64)) {
    throw new TypeError("Failed to perform 'sum' mutation on a non-U64 value in the database");
  }
  return new Deno.KvU64(BigInt.asUintN(64, (before?.value ?? 0n) + count));
}

function isSelected(key: Deno.KvKey, selector: Deno.KvListSelector): boolean {
  if ("prefix" in selector) {
    const { prefix } = selector;
    const isAfterStart = !("start" in selector) || compareKeys(key, selector.start) >= 0;
    return isAfterStart && key.length > prefix.length &&
      compareKeys(key.slice(0, prefix.length), prefix) === 0;
  }
  if (!("start" in selector && "end" in selector)) {
    throw new TypeError("Only ranges and prefixes are supported");
  }
  return compareKeys(key, selector.start) >= 0 && compareKeys(key, selector.end) < 0;
}

/** Compares keys as KV does. Keys here have only strings and numbers, and strings sort first. */
function compareKeys(one: Deno.KvKey, other: Deno.KvKey): number {
  for (let index = 0; index < Math.min(one.length, other.length); index++) {
    const [a, b] = [one[index], other[index]];
    if (a === b) continue;
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a !== typeof b) return typeof a === "string" ? -1 : 1;
    return String(a) < String(b) ? -1 : 1;
  }
  return one.length - other.length;
}

/** A unique string for each key. A bigint becomes an array, because JSON has no bigints and keys have no arrays. */
function nameOf(key: Deno.KvKey): string {
  return JSON.stringify(key.map((part) => typeof part === "bigint" ? [`${part}`] : part));
}

/** A commit that a test can delay, repeat or drop. */
export interface Commit {
  /** Applies it. Each further call applies it again. */
  readonly apply: () => Promise<CommitResult>;
  readonly checks: number;
  readonly keys: readonly Deno.KvKey[];
}

/** What intervenes between a store and its KV. */
export interface Disturbance {
  /** Called before a read of these keys, or of a range (without keys). */
  readonly read?: (keys: readonly Deno.KvKey[]) => Promise<void> | void;
  /** Replaces a commit. */
  readonly commit?: (commit: Commit) => Promise<CommitResult>;
}

/** Wraps a KV so that a test can disturb its reads and commits. */
export function disturbed(kv: Deno.Kv, { read = () => {}, commit = carryOut }: Disturbance): Deno.Kv {
  async function* list(selector: Deno.KvListSelector, options: Deno.KvListOptions) {
    await read([]);
    yield* kv.list(selector, options);
  }
  const methods = new Map<string | symbol, unknown>([
    ["get", async (key: Deno.KvKey) => (await read([key]), await kv.get(key))],
    ["getMany", async (keys: Deno.KvKey[]) => (await read(keys), await kv.getMany(keys))],
    ["list", list],
    ["set", (key: Deno.KvKey, value: unknown) => kv.atomic().set(key, value).commit()], // By a test.
    ["atomic", () => disturbedOperation(kv.atomic(), commit)],
    ["commitVersionstamp", () => kv.commitVersionstamp()],
    ["close", () => kv.close()],
  ]);
  return new Proxy(kv, { get: (_, name) => methods.get(name) });
}

/** Lets a commit through. */
export function carryOut({ apply }: Commit): Promise<CommitResult> {
  return apply();
}

/** Lets a commit through after 20 ms. */
export async function slowly({ apply }: Commit): Promise<CommitResult> {
  await pause(20);
  return await apply();
}

/** Fails as SQLite does while another process has locked the file. The commit does not apply. */
export function locked(): Promise<never> {
  return Promise.reject(new TypeError("database is locked: Error code 5: The database file is locked"));
}

/** Fails as SQLite does when the disk fails. */
export function fail(): Promise<never> {
  return Promise.reject(new TypeError("disk I/O error: /secret/things.kv"));
}

/** Never settles. */
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

/** A file backend with one handle. */
export function onFile(kv: Deno.Kv, options: BackendOptions): FileBackend {
  return new FileBackend(kv, options);
}
