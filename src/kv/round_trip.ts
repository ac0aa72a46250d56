import { setImmediate } from "node:timers";
import { pause } from "./retried.ts";

/** A KV that takes longer than this counts as far, in ms. */
const FAR = 5;
/** How long waiting for company is worth it there, in ms. */
const GATHERING = 1;
const MAX_TURNS = 8;

/** How long KV takes to answer. */
export class RoundTrip {
  readonly #isLocal: boolean;
  #ms = 0;

  constructor({ isLocal }: { readonly isLocal: boolean }) {
    this.#isLocal = isLocal;
  }

  /** The recent mean, in ms. */
  get ms(): number {
    return this.#ms;
  }

  /** Whether most of that is spent travelling. A KV on this machine may be slow, but is never far. */
  get isFar(): boolean {
    return !this.#isLocal && this.#ms > FAR;
  }

  /** Notes how long an operation takes that has just begun. */
  async measured<Result>(operation: Promise<Result>): Promise<Result> {
    const started = performance.now();
    const result = await operation;
    this.#ms += (performance.now() - started - this.#ms) / 8;
    return result;
  }

  /** Resolves when all that arrive at the same time are there, as `count` tells, or `enough` of them. */
  gather(count: () => number, enough?: number): Promise<void> {
    return this.isFar ? pause(GATHERING) : noMoreArrive(count, enough);
  }
}

/** Resolves when a turn of the event loop brings no more of them, when there are enough, or after a few turns. */
export async function noMoreArrive(count: () => number, enough: number = Infinity): Promise<void> {
  let before = 0;
  for (let turn = 0; turn < MAX_TURNS && count() > before && before < enough; turn++) {
    before = count();
    await new Promise((resolve) => setImmediate(resolve));
  }
}
