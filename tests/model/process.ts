import { InFlight } from "../../src/http/in_flight.ts";
import type { ErrorRecord } from "../../src/http/log.ts";
import { Connection } from "../../src/kv/connection.ts";
import { pause } from "../../src/kv/retried.ts";
import { Store } from "../../src/kv/store.ts";
import { createService, type Service } from "../../src/service.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import type { CommitResult, FakeKv, Network } from "../support/fake_kv.ts";
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
  readonly service: Service;
  readonly clock: () => number;
  readonly #inFlight: InFlight = new InFlight();
  /** By how many ms its clock was ahead, the last of which is now. */
  readonly skews: number[];
  /** Whether it was killed: whatever it says still is heard by nobody. */
  isDead = false;
  /** What it has logged of failures. */
  readonly errors: ErrorRecord[] = [];

  constructor(kv: FakeKv, time: VirtualTime, place: Place, skew: number) {
    this.skews = [skew];
    this.wire = new Wire(time, place.latency);
    this.clock = () => START + Math.floor(time.now) + this.skew;
    const { clock } = this;
    this.service = createService({
      store: new Store(new Connection([kv.connect(this.wire)]), { maxChecks: place.maxChecks, clock }),
      environment: "staging",
      publicUrl: undefined,
      maxStalenessMs: place.maxStalenessMs,
      signUpIsOpen: false,
      securityContact: undefined,
      operatorTokens: [OPERATOR_TOKEN],
      chunkedBodies: false,
      clock,
      log: {
        access: () => {},
        error: (record) => this.errors.push(record),
        command: () => {},
        flushed: () => Promise.resolve(),
      },
      clientAddress: (_request, { remoteAddr }) => "hostname" in remoteAddr ? remoteAddr.hostname : "",
      inFlight: this.#inFlight,
    });
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
    await this.#inFlight.stop();
    await this.service.settle();
  }
}
