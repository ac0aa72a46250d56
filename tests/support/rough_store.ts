import { Connection } from "../../src/kv/connection.ts";
import { Store } from "../../src/kv/store.ts";
import { carryOut, type Disturbance, disturbed } from "./disturbed_kv.ts";

export const DAY = 86_400_000;

/** A store that takes ten checks a commit, on a KV in memory, whose clock and KV a test may disturb. */
export class RoughStore implements Disposable {
  readonly kv: Deno.Kv;
  readonly store: Store;
  now: number = 100 * DAY;
  disturbance: Disturbance = {};

  /** The deadline of each operation in ms: a short one is for what hangs. */
  constructor(kv: Deno.Kv, deadline = 5_000) {
    this.kv = kv;
    const rough = disturbed(kv, {
      read: (keys) => this.disturbance.read?.(keys),
      commit: (commit) => (this.disturbance.commit ?? carryOut)(commit),
    });
    const connection = new Connection([rough], { deadline });
    this.store = new Store(connection, { maxChecks: 10, clock: () => this.now });
  }

  static async open(deadline?: number): Promise<RoughStore> {
    return new RoughStore(await Deno.openKv(":memory:"), deadline);
  }

  /** The processes and numbers that markers are left of. */
  async marks(): Promise<Deno.KvKeyPart[][]> {
    return (await Array.fromAsync(this.kv.list({ prefix: ["commits"] }))).map(({ key }) => key.slice(1));
  }

  [Symbol.dispose](): void {
    this.kv.close();
  }
}
