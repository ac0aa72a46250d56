import { setImmediate } from "node:timers";
import { pause } from "./retried.ts";

/** From where on a KV counts as far away, and how long it is worth waiting for company there, in ms. */
const FAR = 5;
const GATHERING = 1;
const MAX_TURNS = 8;

/** How long KV takes to answer. */
export class RoundTrip {
  readonly #isLocal: boolean;
  #ms = 0;

  constructor({ isLocal }: { readonly isLocal: boolean }) {
    this.#isLocal = isLocal;
  }

  /** The mean of late, in ms. */
  get ms(): number {
    return this.#ms;
  }

  /** Whether most of that is spent on the way. A KV on this machine may be slow, but is never far. */
  get isFar(): boolean {
    return !this.#isLocal && this.#ms > FAR;
  }

  /** Takes note of how long an operation takes that has just begun. */
  async measured<Result>(operation: Promise<Result>): Promise<Result> {
    const started = performance.now();
    const result = await operation;
    this.#ms += (performance.now() - started - this.#ms) / 8;
    return result;
  }

  /** Resolves when what comes along at the same time has come, as `count` tells, or `enough` of it. */
  gather(count: () => number, enough?: number): Promise<void> {
    return this.isFar ? pause(GATHERING) : noMoreArrive(count, enough);
  }
}

/** Resolves when a turn of the event loop brings no more to wait for, when there are enough, or after a few turns. */
export async function noMoreArrive(count: () => number, enough: number = Infinity): Promise<void> {
  let before = 0;
  for (let turn = 0; turn < MAX_TURNS && count() > before && before < enough; turn++) {
    before = count();
    await new Promise((resolve) => setImmediate(resolve));
  }
}
