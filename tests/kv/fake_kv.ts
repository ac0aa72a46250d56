/** What a commit comes to. */
export type CommitResult = Deno.KvCommitResult | Deno.KvCommitError;

/** What lies between a process and the KV. */
export interface Network {
  /** Comes before a read is carried out. */
  read(): Promise<void>;
  /** Comes in place of a commit; `apply` carries it out, once more at each call. */
  commit(apply: () => CommitResult): Promise<CommitResult>;
}

/** A network without latency or failures; a test may put others in place of its methods. */
export function calmNetwork(): Network {
  return { read: () => Promise.resolve(), commit: (apply) => Promise.resolve(apply()) };
}

interface Row {
  readonly key: Deno.KvKey;
  readonly value: unknown;
  readonly versionstamp: string;
}

/** A KV that several processes share, each over a network of its own, without any input or output. */
export class FakeKv {
  /** By key. */
  readonly rows: Map<string, Row> = new Map();
  /** Carries out each commit once more that ever applied. */
  readonly repetitions: (() => CommitResult)[] = [];
  #version = 0;

  /** A handle for a process. */
  connect(network: Network): Deno.Kv {
    const get = (key: Deno.KvKey) => this.rows.get(nameOf(key)) ?? { key, value: null, versionstamp: null };
    return Object.assign(Object.create(Deno.Kv.prototype), {
      async get(key: Deno.KvKey) {
        await network.read();
        return get(key);
      },
      async getMany(keys: Deno.KvKey[]) {
        await network.read();
        return keys.map(get);
      },
      atomic: () => this.#atomic(network),
      close() {},
    });
  }

  /** The value of a row. */
  value(...key: Deno.KvKey): unknown {
    return this.rows.get(nameOf(key))?.value;
  }

  #atomic(network: Network): unknown {
    const checks: Deno.AtomicCheck[] = [];
    const changes: (readonly [key: Deno.KvKey, change: (before: unknown) => unknown])[] = [];
    const apply = (): CommitResult => {
      const holds = checks.every(({ key, versionstamp }) =>
        (this.rows.get(nameOf(key))?.versionstamp ?? null) === versionstamp
      );
      if (!holds) return { ok: false };
      const versionstamp = `${++this.#version}`.padStart(20, "0");
      for (const [key, change] of changes) {
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
      commit: () => network.commit(apply),
    };
    return operation;
  }
}

/** As KV does, it fails after what comes before it has been stored. */
function sumOf(before: unknown, count: bigint): Deno.KvU64 {
  if (before !== undefined && !(before instanceof Deno.KvU64)) {
    throw new TypeError("Failed to perform 'sum' mutation on a non-U64 value in the database");
  }
  return new Deno.KvU64(BigInt.asUintN(64, (before?.value ?? 0n) + count));
}

function nameOf(key: Deno.KvKey): string {
  return JSON.stringify(key);
}
