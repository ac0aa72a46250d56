import {
  earlier,
  FUTURE,
  monotonicNow,
  type MonotonicTime,
  msBetween,
  PAST,
  pause,
  plus,
} from "../base/mod.ts";

/** Limits of {@linkcode InFlight}. */
export interface InFlightLimits {
  /** Maximum number of requests in flight. */
  readonly capacity: number;
  /** Maximum number of requests of monitoring in flight, beside the others. */
  readonly monitoring: number;
  /** Maximum time to respond to a request, in ms. Time spent waiting for the client does not count. */
  readonly budgetMs: number;
  /** Maximum time to respond to the remaining requests when the service stops, in ms. */
  readonly stopMs: number;
  /** How long no request must arrive before a stopping service closes, in ms. */
  readonly quietMs: number;
  /** Maximum time to wait for that, in ms. */
  readonly maxQuietMs: number;
}

/** The limits of the service. */
export const IN_FLIGHT_LIMITS: InFlightLimits = {
  capacity: 10_000,
  monitoring: 100,
  budgetMs: 5_000,
  stopMs: 3_000,
  quietMs: 500,
  maxQuietMs: 2_000,
};

/** How often to check for requests that have timed out, in ms. */
const TICK = 100;

/** A request did not get its response in time. */
export class OutOfTime extends Error {
  override readonly name = "OutOfTime";
}

/** The time left for a request. */
export class Budget {
  deadline: MonotonicTime;
  /** Whether the request has timed out. */
  isOver = false;

  constructor(deadline: MonotonicTime) {
    this.deadline = deadline;
  }

  /**
   * Call before each step with side effects. A client might repeat a request that timed out, so no new step is allowed
   * to begin.
   *
   * @throws {OutOfTime} if the request has timed out.
   */
  check(): void {
    if (this.isOver) throw new OutOfTime();
  }

  /** Stops the clock while the service is waiting for the client. */
  pausedFor<T>(client: Promise<T>): Promise<T> {
    const left = msBetween(monotonicNow(), this.deadline);
    const resume = () => void (this.deadline = plus(monotonicNow(), left));
    this.deadline = FUTURE;
    client.then(resume, resume);
    return client;
  }
}

/** A request to respond to. */
export interface InFlightRequest {
  /** Time of arrival. */
  readonly at: MonotonicTime;
  /** Maximum time to respond, in ms; by default that of the limits. */
  readonly timeoutMs?: number | undefined;
  readonly isForMonitoring?: boolean;
  /** `work` begins when this resolves; undefined if it can begin immediately. */
  readonly ready?: Promise<void> | undefined;
  readonly work: (budget: Budget) => Response | Promise<Response>;
  /**
   * Returns the response to an error: OutOfTime, or one that `work` or `finish` threw. `work` may throw another after the
   * request has timed out.
   */
  readonly failed: (error: unknown) => Response;
  /** Completes the response. If it throws, it is called once more, with the response to that error. */
  readonly finish: (response: Response) => Response;
}

/** A request that has no response yet. */
interface Pending {
  readonly isForMonitoring: boolean;
  readonly budget: Budget;
  readonly begin: () => void;
  readonly fail: (error: unknown) => void;
  /** Its index in `#pending`. */
  index: number;
}

/** Requests that wait for the same promise. */
interface Group {
  readonly ready: Promise<void>;
  readonly members: Pending[];
}

/**
 * The requests in flight. One timer times out requests that take too long, and the service can wait for the last
 * request before it stops. A synchronous response costs neither a promise nor a timer.
 */
export class InFlight {
  readonly #limits: InFlightLimits;
  /** Not a Set, because a Set's discarded tables keep finished requests in memory until the next garbage collection. */
  readonly #pending: Pending[] = [];
  #monitoring = 0;
  /** Those that wait for the promise of the latest one. */
  #group: Group | undefined;
  readonly #empty: PromiseWithResolvers<void> = Promise.withResolvers();
  /** When a stop must be complete. */
  #end = FUTURE;
  /** When a stop no longer waits for quiet. */
  #quietEnd = PAST;
  /** When a stop began or, since then, a request was last refused or ended. */
  #lastActive = PAST;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(limits: InFlightLimits = IN_FLIGHT_LIMITS) {
    this.#limits = limits;
  }

  /** Number of requests in flight. */
  get size(): number {
    return this.#pending.length;
  }

  /** Maximum number of requests in flight, without those of monitoring. */
  get capacity(): number {
    return this.#limits.capacity;
  }

  /** Whether no further request should be accepted. */
  isFull(isForMonitoring: boolean = false): boolean {
    const { capacity, monitoring } = this.#limits;
    return isForMonitoring ? this.#monitoring >= monitoring : this.size - this.#monitoring >= capacity;
  }

  /** Whether the service is stopping, so that further requests should be refused. */
  get isStopping(): boolean {
    return this.#end !== FUTURE;
  }

  /** Responds to a request in time, even if a promise that it is waiting for never settles. */
  run(request: InFlightRequest): Response | Promise<Response> {
    const { at, timeoutMs = this.#limits.budgetMs, ready, work, finish, failed } = request;
    const budget = new Budget(plus(at, timeoutMs));
    if (ready) return this.#inTime(request, budget, () => work(budget));
    try {
      const response = work(budget);
      return response instanceof Promise ? this.#inTime(request, budget, () => response) : finish(response);
    } catch (error) {
      return finish(failed(error));
    }
  }

  /** Resolves once every request has its response or has timed out, after `stopMs` at most. */
  async stop(): Promise<void> {
    const { stopMs, maxQuietMs } = this.#limits;
    this.#lastActive = monotonicNow();
    this.#end = plus(this.#lastActive, stopMs);
    this.#quietEnd = plus(this.#lastActive, maxQuietMs);
    if (this.size === 0) this.#empty.resolve();
    await this.#empty.promise;
    this.#stopTimer();
  }

  /** Call if a request is refused because the service is stopping: its client may send another. */
  restartQuiet(): void {
    this.#lastActive = monotonicNow();
  }

  /**
   * Resolves once a stop has been quiet for `quietMs`: no request was refused or ended, except those of monitoring. That is
   * `maxQuietMs` after its beginning at the latest. Until then, clients get a response that sends them elsewhere.
   */
  async quiet(): Promise<void> {
    const end = () => earlier(plus(this.#lastActive, this.#limits.quietMs), this.#quietEnd);
    const left = () => msBetween(monotonicNow(), end());
    while (left() > 0) await pause(left());
  }

  /** Settles with the response of `work`, or that to an error or a timeout, whichever comes first. */
  #inTime(
    { isForMonitoring = false, ready, finish, failed }: InFlightRequest,
    budget: Budget,
    work: () => Response | Promise<Response>,
  ): Promise<Response> {
    const { promise, resolve, reject } = Promise.withResolvers<Response>();
    const end = (make: () => Response) => {
      this.#remove(pending);
      try {
        resolve(make());
      } catch (error) {
        reject(error);
      }
    };
    const fail = (error: unknown) => {
      if (!budget.isOver) end(() => finish(failed(error)));
      else if (!(error instanceof OutOfTime)) failed(error);
    };
    const succeed = (response: Response) => {
      if (budget.isOver) return;
      try {
        const finished = finish(response);
        end(() => finished);
      } catch (error) {
        fail(error);
      }
    };
    const begin = () => {
      try {
        const response = work();
        if (response instanceof Promise) response.then(succeed, fail);
        else succeed(response);
      } catch (error) {
        fail(error);
      }
    };
    const pending: Pending = { budget, isForMonitoring, begin, fail, index: this.size };
    this.#pending.push(pending);
    if (isForMonitoring) this.#monitoring++;
    this.#timer ??= setInterval(() => this.#giveUpLate(), TICK);
    if (ready) this.#beginWhen(ready, pending);
    else begin();
    return promise;
  }

  /** Begins a request when a promise resolves. All that wait for it share one callback, because each costs time. */
  #beginWhen(ready: Promise<void>, pending: Pending): void {
    if (this.#group?.ready === ready) return void this.#group.members.push(pending);
    const group = this.#group = { ready, members: [pending] };
    const forEach = (act: (pending: Pending) => void) => {
      if (this.#group === group) this.#group = undefined;
      for (const member of group.members) if (!member.budget.isOver) act(member);
    };
    ready.then(
      () => forEach(({ begin }) => begin()),
      (error) => forEach(({ fail }) => fail(error)),
    );
  }

  #remove({ index, isForMonitoring }: Pending): void {
    if (isForMonitoring) this.#monitoring--;
    else if (this.isStopping) this.#lastActive = monotonicNow();
    const last = this.#pending.pop();
    if (last && last.index !== index) {
      this.#pending[index] = last;
      last.index = index;
    }
    if (this.size === 0 && this.isStopping) this.#empty.resolve();
  }

  #giveUpLate(): void {
    const now = monotonicNow();
    const isLate = ({ budget: { deadline } }: Pending) => earlier(deadline, this.#end) <= now;
    for (const pending of this.#pending.filter(isLate)) {
      pending.fail(new OutOfTime());
      pending.budget.isOver = true;
    }
    // The timer is not stopped when the last request ends, because starting a timer costs as much as a request.
    if (this.size === 0) this.#stopTimer();
  }

  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
