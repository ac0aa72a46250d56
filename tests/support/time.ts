// Time and random numbers under the control of a test.
import { setImmediate } from "node:timers";

/** Noon of a day before any operation is removed, in ms since the epoch. */
export const NOON: number = Date.UTC(2027, 0, 15, 12);

interface Timer {
  readonly at: number;
  readonly period: number | undefined;
  readonly callback: () => void;
}

/** After this many turns of the event loop, all work that does not wait for a timer is done. */
const TURNS = 24;

/**
 * Virtual time: `setTimeout`, `setInterval` and `performance.now()` follow it from its creation until it is disposed.
 * Code under virtual time must not do any I/O. Its end throws if timers are set, because work that waits for them
 * could go on in the next test, in real time.
 */
export class VirtualTime implements AsyncDisposable {
  /** Ms since its creation. */
  now = 0;
  readonly #timers: Map<number, Timer> = new Map();
  readonly #originals = { setTimeout, clearTimeout, setInterval, clearInterval, now: performance.now };
  #id = 0;

  constructor() {
    const add = (repeats: boolean) => (callback: () => void, ms = 0) => {
      if (ms < 0) throw new RangeError("Deno warns of a time below zero");
      const period = repeats ? ms : undefined;
      this.#timers.set(++this.#id, { at: this.now + ms, period, callback });
      return this.#id;
    };
    const remove = (id: number) => void this.#timers.delete(id);
    const timers = {
      setTimeout: add(false),
      setInterval: add(true),
      clearTimeout: remove,
      clearInterval: remove,
    };
    Object.assign(globalThis, timers);
    performance.now = () => this.now;
  }

  /** Advances time by `ms`. */
  async advance(ms: number): Promise<void> {
    const end = this.now + ms;
    for (await settle(); this.#fireNext(end); await settle());
    this.now = end;
  }

  /** Advances time until the promise settles, by at most `ms`. */
  async until<T>(promise: Promise<T>, ms: number): Promise<T> {
    let done = false;
    const noted = promise.finally(() => done = true);
    noted.catch(() => {});
    const end = this.now + ms;
    for (await settle(); !done && this.#fireNext(end); await settle());
    if (!done) throw new Error(`The promise did not settle within ${ms} ms`);
    return await noted;
  }

  /** Fires the first timer until `end`. Returns whether there was one. */
  #fireNext(end: number): boolean {
    let [id, timer]: [number?, Timer?] = [];
    for (const [other, candidate] of this.#timers) {
      if (candidate.at <= end && candidate.at < (timer?.at ?? Infinity)) [id, timer] = [other, candidate];
    }
    if (id === undefined || timer === undefined) return false;
    const { period } = timer;
    this.now = Math.max(this.now, timer.at);
    if (period === undefined) this.#timers.delete(id);
    else this.#timers.set(id, { ...timer, at: this.now + Math.max(1, period) });
    timer.callback();
    return true;
  }

  /** Ends all timers, as a process that is killed does. */
  clear(): void {
    this.#timers.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await settle();
    const { now, ...timers } = this.#originals;
    Object.assign(globalThis, timers);
    performance.now = now;
    const left = [...this.#timers.values()].map(({ at }) => at - this.now);
    if (left.length > 0) throw new Error(`Timers are set, and end in ${left.join(" and ")} ms`);
  }
}

/** Lets `performance.now()` jump ahead, in real or virtual time. */
export function jumpAhead(ms: number): void {
  const now = performance.now.bind(performance);
  performance.now = () => now() + ms;
}

/** Runs all work that does not wait for a timer. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS; turn++) {
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
}

/** Returns a generator of numbers from 0 to 1 that depend only on the seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
