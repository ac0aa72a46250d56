import { monotonicNow, msSince, pause } from "../base/mod.ts";
import { errorRecord, type Log } from "./log.ts";

/** Removes some of the rows that have expired by `now`. Resolves to true if there may be more. */
export type Sweep = (now: number) => Promise<boolean>;

const INTERVAL = 60_000;
/** Period of the timer, slightly longer than INTERVAL: the clock may run slower than the timer. */
const TICK = INTERVAL + 1_000;
const MAX_STEPS = 1_000;
/** Pause after a step, so that requests can use KV: a multiple of the step's duration, and its maximum in ms. */
const REST = 3;
const LONGEST_REST = 500;

/** Runs every sweep once a minute, in small steps. Requests also start it, in case timers do not run between them. */
export class Sweeper {
  readonly #sweeps: readonly Sweep[];
  readonly #clock: () => number;
  readonly #log: Log;
  readonly #timer: ReturnType<typeof setInterval>;
  #running: Promise<void> | undefined;
  #startedAt: number;
  #stopped = false;

  constructor(sweeps: readonly Sweep[], clock: () => number, log: Log) {
    this.#sweeps = sweeps;
    this.#clock = clock;
    this.#log = log;
    this.#startedAt = clock();
    this.#timer = setInterval(() => this.sweepIfDue(), TICK);
  }

  /** Starts the sweeps in the background if the last ones began at least a minute ago. */
  sweepIfDue(): void {
    // Called with every request. The clock costs less than performance.now(), but may step back.
    if (this.#stopped || this.#running || Math.abs(this.#clock() - this.#startedAt) < INTERVAL) return;
    this.#startedAt = this.#clock();
    this.#running = sweepAll(this.#sweeps, this.#startedAt, this.#log, () => this.#stopped).then(() => {
      this.#running = undefined;
    });
  }

  /** Stops the sweeps. Resolves once the current step is done. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#running;
  }
}

/** Runs every sweep until nothing is left or it has taken its maximum number of steps. Logs failures. */
export async function sweepAll(
  sweeps: readonly Sweep[],
  now: number,
  log: Log,
  stopped: () => boolean = () => false,
): Promise<void> {
  for (const sweep of sweeps) {
    try {
      for (let step = 0; step < MAX_STEPS && !stopped(); step++) {
        const started = monotonicNow();
        if (!await sweep(now) || stopped()) break;
        await pause(Math.min(REST * (msSince(started)), LONGEST_REST));
      }
    } catch (error) {
      log.error(errorRecord(error, now, "sweep"));
    }
  }
}
