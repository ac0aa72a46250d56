import type { ErrorRecord } from "../../src/http/log.ts";
import { pause } from "../../src/kv/deadline.ts";
import type { Service } from "../../src/service.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import type { CommitResult, FakeKv, Network } from "../support/fake_kv.ts";
import { Harness } from "../support/harness.ts";
import type { VirtualTime } from "../support/time.ts";

/** A minute and a half before midnight, ms since the epoch. */
export const START: number = Date.UTC(2027, 0, 15, 23, 58, 30);

/** Where the processes of a world are, and how they are set. */
export interface Place {
  /** How long KV takes to answer, in ms. */
  readonly latency: number;
  /** Checks that it takes in one commit. */
  readonly maxChecks: number;
  readonly maxStalenessMs: number;
}

/** The way from a process to the KV. */
export class Wire implements Network {
  readonly #time: VirtualTime;
  readonly #latency: number;
  isCut = false;
  pausedUntil = 0;
  losesReply = false;
  /** By how many ms the reply of the next commit is late. */
  lateness = 0;
  landsLate = false;
  /** Whether the connection breaks before the next commit arrives, or before its reply does. */
  breaks: "before" | "after" | undefined;
  /** Until when no commit is carried out. */
  refusesUntil = 0;
  /** Told what a commit sets as it is handed to KV. */
  onCommit: (values: readonly unknown[]) => void = () => {};

  constructor(time: VirtualTime, latency: number) {
    this.#time = time;
    this.#latency = latency;
  }

  /** Nothing is disturbed any more. */
  heal(): void {
    this.losesReply = this.landsLate = false;
    this.breaks = undefined;
    this.lateness = this.refusesUntil = this.pausedUntil = 0;
  }

  async read(): Promise<void> {
    await this.#travel();
    await this.#travel();
  }

  async commit(apply: () => CommitResult, values: readonly unknown[]): Promise<CommitResult> {
    this.onCommit(values);
    const { losesReply, landsLate, lateness, breaks } = this;
    this.losesReply = this.landsLate = false;
    this.breaks = undefined;
    this.lateness = 0;
    await this.#travel();
    if (landsLate) {
      await pause(7_000);
      apply();
      return await new Promise(() => {});
    }
    if (breaks === "before") throw new TypeError("connection reset");
    const result = this.#time.now < this.refusesUntil ? { ok: false } as const : apply();
    await pause(lateness);
    await this.#travel();
    if (breaks === "after") throw new TypeError("connection reset");
    // Deno's client repeats a commit whose reply it has not got.
    return losesReply ? apply() : result;
  }

  async #travel(): Promise<void> {
    await pause(this.#latency / 2 + Math.max(0, this.pausedUntil - this.#time.now));
    if (this.isCut) await new Promise(() => {});
  }
}

/** One process of the service; what it is asked goes through its `fetch` alone. */
export class Process {
  readonly wire: Wire;
  readonly clock: () => number;
  /** By how many ms its clock was ahead, the last of which is now. */
  readonly skews: number[];
  /** Whether it was killed: whatever it says still is heard by nobody. */
  isDead = false;
  readonly #harness: Harness;

  constructor(kv: FakeKv, time: VirtualTime, { latency, ...place }: Place, skew: number) {
    this.skews = [skew];
    this.wire = new Wire(time, latency);
    this.clock = () => START + Math.floor(time.now) + this.skew;
    this.#harness = new Harness(kv.connect(this.wire), {
      ...place,
      signUpIsOpen: false,
      operatorToken: OPERATOR_TOKEN,
      clock: this.clock,
      clientAddress: (_request, { remoteAddr }) => "hostname" in remoteAddr ? remoteAddr.hostname : "",
    });
    this.#harness.expectsErrors = true;
  }

  get service(): Service {
    return this.#harness.app;
  }

  /** What it has logged of failures. */
  get errors(): readonly ErrorRecord[] {
    return this.#harness.errors;
  }

  /** By how many ms its clock is ahead. */
  get skew(): number {
    return this.skews.at(-1) ?? 0;
  }

  /** Ends without a word: what is on its way may still land. */
  kill(): void {
    this.isDead = this.wire.isCut = true;
  }

  /** Stops as `main.ts` does. */
  async stop(): Promise<void> {
    await this.#harness.stop();
  }
}
