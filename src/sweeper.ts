import { errorRecord, type Log } from "./http/log.ts";
import { pause } from "./kv/deadline.ts";

/** Removes some of what has expired by `now` (ms since the epoch); resolves to whether there may be more. */
export type Sweep = (now: number) => Promise<boolean>;

const INTERVAL = 60_000;
/** The timer comes a little later, so that it is due by the clock, too. */
const TICK = INTERVAL + 1_000;
const MAX_STEPS = 1_000;
/** How long KV is left to requests after a step: as a multiple of that, and in ms at most. */
const REST = 3;
const LONGEST_REST = 500;

/** Runs every sweep once a minute, in small steps: by a timer, and after requests where timers sleep between them. */
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

  /** Starts to sweep in the background, if the last time began a minute ago. */
  sweepIfDue(): void {
    // Asked with every request: the clock costs less than performance.now(), but may step back.
    if (this.#stopped || this.#running || Math.abs(this.#clock() - this.#startedAt) < INTERVAL) return;
    this.#startedAt = this.#clock();
    this.#running = sweepAll(this.#sweeps, this.#startedAt, this.#log, () => this.#stopped).then(() => {
      this.#running = undefined;
    });
  }

  /** Resolves once no step is under way, and none will be. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#timer);
    await this.#running;
  }
}

/** Runs every sweep for as long as there is more, within bounds. A failure goes to the log. */
export async function sweepAll(
  sweeps: readonly Sweep[],
  now: number,
  log: Log,
  stopped: () => boolean = () => false,
): Promise<void> {
  for (const sweep of sweeps) {
    try {
      for (let step = 0; step < MAX_STEPS && !stopped(); step++) {
        const started = performance.now();
        if (!await sweep(now) || stopped()) break;
        await pause(Math.min(REST * (performance.now() - started), LONGEST_REST));
      }
    } catch (error) {
      log.error(errorRecord(error, now, "sweep"));
    }
  }
}
