import type { ErrorRecord } from "../../src/app/log.ts";
import { pause } from "../../src/base/time.ts";
import type { Service } from "../../src/app/service.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import type { CommitResult, FakeKv, Network } from "../support/fake_kv.ts";
import { Harness, type HarnessOptions } from "../support/harness.ts";
import type { VirtualTime } from "../support/time.ts";

/** A minute and a half before midnight, in ms since the epoch. */
export const START: number = Date.UTC(2027, 0, 15, 23, 58, 30);

/** How the processes of a world are deployed. */
export interface Deployment {
  /** Round trip to KV, in ms. */
  readonly latency: number;
  /** Opens a backend on a server; undefined for a file. */
  readonly openServer?: HarnessOptions["backend"] | undefined;
  readonly maxStalenessMs: number;
}

/** The network between a process and KV. */
export class Wire implements Network {
  readonly #time: VirtualTime;
  readonly #latency: number;
  readonly #isFile: boolean;
  isCut = false;
  pausedUntil = 0;
  losesReply = false;
  /** Delay of the reply to the next commit, in ms. */
  lateness = 0;
  /** Whether the next commit applies seconds late and, on a server, gets no reply. */
  landsLate = false;
  /** Whether the next commit fails, or the connection to a server breaks before the reply arrives. */
  breaks: "before" | "after" | undefined;
  /** Until when commits fail as if a check did not hold. */
  refusesUntil = 0;
  /** Called with the values of each commit when it is sent. */
  onCommit: (values: readonly unknown[]) => void = () => {};

  constructor(time: VirtualTime, { latency, openServer }: Deployment) {
    this.#time = time;
    this.#latency = latency;
    this.#isFile = openServer === undefined;
  }

  /** Ends all disturbances. */
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
      const result = apply();
      return this.#isFile ? result : await new Promise(() => {});
    }
    if (breaks === "before" || (breaks && this.#isFile)) throw new TypeError("connection reset");
    const result = this.#time.now < this.refusesUntil ? { ok: false } as const : apply();
    await pause(lateness);
    await this.#travel();
    if (breaks === "after") throw new TypeError("connection reset");
    // Deno's client repeats a commit if its reply is lost.
    return losesReply && !this.#isFile ? apply() : result;
  }

  async #travel(): Promise<void> {
    await pause(this.#latency / 2 + Math.max(0, this.pausedUntil - this.#time.now));
    if (this.isCut) await new Promise(() => {});
  }
}

/** A process of the service. Clients and operators reach it only through `service.fetch`. */
export class Process {
  readonly wire: Wire;
  readonly clock: () => number;
  /** How many ms its clock has been ahead, the current value last. */
  readonly skews: number[];
  /** Whether it was killed. Its later responses reach nobody. */
  isDead = false;
  readonly #harness: Harness;

  constructor(kv: FakeKv, time: VirtualTime, deployment: Deployment, skew: number) {
    this.skews = [skew];
    this.wire = new Wire(time, deployment);
    this.clock = () => START + Math.floor(time.now) + this.skew;
    this.#harness = new Harness(kv.connect(this.wire), {
      maxStalenessMs: deployment.maxStalenessMs,
      ...(deployment.openServer ? { backend: deployment.openServer } : {}),
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

  /** Errors that it has logged. */
  get errors(): readonly ErrorRecord[] {
    return this.#harness.errors;
  }

  /** How many ms its clock is ahead. */
  get skew(): number {
    return this.skews.at(-1) ?? 0;
  }

  /** Kills it. Commits that it has sent may still arrive. */
  kill(): void {
    this.isDead = this.wire.isCut = true;
  }

  /** Stops as `main.ts` does. */
  async stop(): Promise<void> {
    await this.#harness.stop();
  }
}
