import { assertLessOrEqual } from "@std/assert";
import { carryOut, type Commit, type Disturbance, disturbed } from "./disturbed_kv.ts";
import { FakeKv, type Network } from "./fake_kv.ts";
import { Harness, type HarnessOptions } from "./harness.ts";
import type { VirtualTime } from "./time.ts";

/** No way at all: so what is done takes no time unless it is made to. */
export const AT_ONCE: Network = {
  read: () => Promise.resolve(),
  commit: (apply) => Promise.resolve(apply()),
};

/**
 * A process of the service in virtual time that notes what it asks of its KV. As long as time stands still,
 * whoever sends two requests, one after the other, gets a lease.
 */
export class NotedService extends Harness {
  readonly reads: (readonly Deno.KvKey[])[] = [];
  readonly commits: Commit[] = [];
  /** What comes between it and its KV from now on. */
  disturbance: Disturbance = {};
  readonly #time: VirtualTime;

  constructor(time: VirtualTime, fake: FakeKv = new FakeKv(), options: HarnessOptions = {}) {
    const kv = Object.assign(fake.connect(AT_ONCE), { async *list() {} });
    const noted = disturbed(kv, {
      read: (keys) => (this.reads.push(keys), this.disturbance.read?.(keys)),
      commit: (commit) => (this.commits.push(commit), (this.disturbance.commit ?? carryOut)(commit)),
    });
    super(noted, options);
    this.#time = time;
  }

  /** Asserts that it has asked its KV for no more than this since it last forgot. */
  assertCost(most: { readonly reads: number; readonly commits: number }): void {
    assertLessOrEqual(this.reads.length, most.reads, `reads of ${JSON.stringify(this.reads)}`);
    assertLessOrEqual(this.commits.length, most.commits, "commits");
  }

  /** Forgets what it has noted so far. */
  forget(): void {
    this.reads.length = this.commits.length = 0;
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.#time.until(super[Symbol.asyncDispose](), 10_000);
  }
}
