import { pause } from "../../src/base/time.ts";
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

/** What happens to one commit. */
export interface Disturbed {
  /** Delay of its reply, in ms. */
  readonly lateness?: number;
  /** Whether a server's reply is lost, so that Deno's client repeats the commit. */
  readonly losesReply?: boolean;
  /** Whether it applies seconds late and, on a server, gets no reply. */
  readonly landsLate?: boolean;
  /** Whether it fails, or the connection to a server breaks before the reply arrives. */
  readonly breaks?: "before" | "after";
}

/** The network between a process and KV. */
class Wire implements Network {
  readonly #time: VirtualTime;
  readonly #latency: number;
  readonly #isFile: boolean;
  isCut = false;
  pausedUntil = 0;
  /** Until when commits fail as if a check did not hold. */
  refusesUntil = 0;
  /** What happens to the next commit. */
  next: Disturbed = {};
  /** Called with the values of each commit when it is sent. */
  onCommit: (values: readonly unknown[]) => void = () => {};

  constructor(time: VirtualTime, { latency, openServer }: Deployment) {
    this.#time = time;
    this.#latency = latency;
    this.#isFile = openServer === undefined;
  }

  /** Ends all disturbances. */
  heal(): void {
    this.next = {};
    this.refusesUntil = this.pausedUntil = 0;
  }

  async read(): Promise<void> {
    await this.#travel();
    await this.#travel();
  }

  async commit(apply: () => CommitResult, values: readonly unknown[]): Promise<CommitResult> {
    this.onCommit(values);
    const { lateness = 0, losesReply, landsLate, breaks } = this.next;
    this.next = {};
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
    return losesReply && !this.#isFile ? apply() : result;
  }

  async #travel(): Promise<void> {
    await pause(this.#latency / 2 + Math.max(0, this.pausedUntil - this.#time.now));
    if (this.isCut) await new Promise(() => {});
  }
}

/** A process of the service. Clients and operators reach it only through `app.fetch`. */
export class Process extends Harness {
  readonly wire: Wire;
  /** How many ms its clock has been ahead, the current value last. */
  readonly skews: number[];
  override readonly expectsErrors: boolean = true;
  readonly #time: VirtualTime;

  constructor(kv: FakeKv, time: VirtualTime, deployment: Deployment, skew: number) {
    const wire = new Wire(time, deployment);
    super(kv.connect(wire), {
      maxStalenessMs: deployment.maxStalenessMs,
      ...(deployment.openServer ? { backend: deployment.openServer } : {}),
      signUpIsOpen: false,
      operatorToken: OPERATOR_TOKEN,
      clock: () => this.clock,
      clientAddress: (_request, { remoteAddr }) => "hostname" in remoteAddr ? remoteAddr.hostname : "",
    });
    this.wire = wire;
    this.skews = [skew];
    this.#time = time;
  }

  /** What its clock shows. */
  get clock(): number {
    return START + Math.floor(this.#time.now) + this.skew;
  }

  /** How many ms its clock is ahead. */
  get skew(): number {
    return this.skews.at(-1) ?? 0;
  }

  /** Whether it was killed. Commits that it has sent may still arrive, but its later responses reach nobody. */
  get isDead(): boolean {
    return this.wire.isCut;
  }
}
