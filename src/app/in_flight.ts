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
  /**
   * When its work began, or went on after waiting for the client. Requests that begin together share this time, because
   * to look at a clock costs time.
   */
  begun: MonotonicTime;
  /** Whether the request has timed out. */
  isOver = false;
  /** The request, once it is in flight. */
  pending: Pending | undefined;

  constructor(at: MonotonicTime, timeoutMs: number) {
    this.deadline = plus(at, timeoutMs);
    this.begun = at;
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
    const resume = () => {
      this.begun = monotonicNow();
      this.deadline = plus(this.begun, left);
    };
    this.deadline = FUTURE;
    client.then(resume, resume);
    return client;
  }
}

/** How requests of a kind are served. */
export interface Serving<Of> {
  work(request: Of, budget: Budget): Response | Promise<Response>;
  /**
   * Returns the response to an error: OutOfTime, or one that `work` or `finish` threw. `work` may throw another after the
   * request has timed out.
   */
  failed(request: Of, error: unknown): Response;
  /** Completes the response. If it throws, it is called once more, with the response to that error. */
  finish(request: Of, response: Response): Response;
  /** Called when the response is complete. Never throws. */
  ended(request: Of, at: MonotonicTime): void;
}

/** When and how long to serve a request. */
export interface Schedule {
  /** Time of arrival. */
  readonly at: MonotonicTime;
  /** Maximum time to respond, in ms; by default that of the limits. */
  readonly timeoutMs?: number | undefined;
  readonly isForMonitoring?: boolean;
  /** `work` begins when this resolves; undefined if it can begin immediately. */
  readonly ready?: Promise<void> | undefined;
}

/** A request that has no response yet. */
interface Pending<Of = unknown> {
  readonly request: Of;
  readonly serving: Serving<Of>;
  readonly budget: Budget;
  readonly isForMonitoring: boolean;
  readonly resolve: (response: Response) => void;
  readonly reject: (error: unknown) => void;
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
  /** What ends the waits of requests that are idle. */
  readonly #idle: Set<() => void> = new Set();
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
  run<Of>(request: Of, serving: Serving<Of>, schedule: Schedule): Response | Promise<Response> {
    const { at, timeoutMs = this.#limits.budgetMs, ready, isForMonitoring = false } = schedule;
    const budget = new Budget(at, timeoutMs);
    const wait = (begin: (pending: Pending<Of>) => void): Promise<Response> => {
      const { promise, resolve, reject } = Promise.withResolvers<Response>();
      const pending = { request, serving, budget, isForMonitoring, resolve, reject, index: 0 };
      budget.pending = pending;
      this.#add(pending);
      begin(pending);
      return promise;
    };
    if (ready) return wait((pending) => this.#beginWhen(ready, pending));
    let finished: Response;
    try {
      const response = serving.work(request, budget);
      if (response instanceof Promise) return wait((pending) => this.#await(response, pending));
      finished = serving.finish(request, response);
    } catch (error) {
      finished = serving.finish(request, serving.failed(request, error));
    }
    serving.ended(request, monotonicNow());
    return finished;
  }

  /** Resolves once every request has its response or has timed out, after `stopMs` at most. */
  async stop(): Promise<void> {
    const { stopMs, maxQuietMs } = this.#limits;
    this.#lastActive = monotonicNow();
    this.#end = plus(this.#lastActive, stopMs);
    this.#quietEnd = plus(this.#lastActive, maxQuietMs);
    for (const end of this.#idle) end();
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
    for (let ms = left(); ms > 0; ms = left()) await pause(ms);
  }

  /**
   * Lets a request wait for something to happen. Meanwhile, it is not in flight, and its time does not run. The signal
   * aborts when the service stops, or when `client` aborts.
   */
  async idle<Result>(
    budget: Budget,
    client: AbortSignal,
    wait: (signal: AbortSignal) => Promise<Result>,
  ): Promise<Result> {
    await Promise.resolve(); // A handler that waits at once is not in flight yet.
    budget.check();
    const { pending } = budget;
    const stop = new AbortController();
    const signal = AbortSignal.any([client, stop.signal]);
    const end = () => {
      // The stop waits for its response.
      if (this.#idle.delete(end) && pending) this.#add(pending);
      stop.abort();
    };
    if (this.isStopping) end();
    else {
      this.#idle.add(end);
      if (pending) this.#remove(pending);
    }
    return await budget.pausedFor(wait(signal).finally(end));
  }

  #add(pending: Pending): void {
    pending.index = this.size;
    this.#pending.push(pending);
    if (pending.isForMonitoring) this.#monitoring++;
    this.#timer ??= setInterval(() => this.#giveUpLate(), TICK);
  }

  /**
   * Begins a request when a promise resolves. All that wait for it share one callback and two looks at a clock, because
   * each costs time.
   */
  #beginWhen(ready: Promise<void>, pending: Pending): void {
    if (this.#group?.ready === ready) return void this.#group.members.push(pending);
    const group = this.#group = { ready, members: [pending] };
    const forEach = (act: (pending: Pending) => boolean) => {
      if (this.#group === group) this.#group = undefined;
      const begun = monotonicNow();
      const ended: Pending[] = [];
      for (const member of group.members) {
        member.budget.begun = begun;
        if (!member.budget.isOver && act(member)) ended.push(member);
      }
      endAll(ended);
    };
    ready.then(
      () => forEach((member) => this.#begin(member)),
      (error) => forEach((member) => this.#fail(member, error)),
    );
  }

  /** Begins to work on a request. Returns whether that has ended it. */
  #begin(pending: Pending): boolean {
    try {
      const response = pending.serving.work(pending.request, pending.budget);
      if (!(response instanceof Promise)) return this.#succeed(pending, response);
      this.#await(response, pending);
      return false;
    } catch (error) {
      return this.#fail(pending, error);
    }
  }

  #await(response: Promise<Response>, pending: Pending): void {
    const end = (isEnded: boolean) => isEnded && endAll([pending]);
    response.then(
      (made) => end(this.#succeed(pending, made)),
      (error) => end(this.#fail(pending, error)),
    );
  }

  /** Returns whether this has ended the request. */
  #succeed(pending: Pending, response: Response): boolean {
    if (pending.budget.isOver) return false;
    try {
      const finished = pending.serving.finish(pending.request, response);
      this.#remove(pending);
      pending.resolve(finished);
      return true;
    } catch (error) {
      return this.#fail(pending, error);
    }
  }

  /** Returns whether this has ended the request, because it has not timed out before. */
  #fail(pending: Pending, error: unknown): boolean {
    const { request, serving, budget } = pending;
    if (budget.isOver) {
      if (!(error instanceof OutOfTime)) serving.failed(request, error);
      return false;
    }
    this.#remove(pending);
    try {
      pending.resolve(serving.finish(request, serving.failed(request, error)));
    } catch (fault) {
      pending.reject(fault);
    }
    return true;
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
    const late = this.#pending.filter(isLate);
    for (const pending of late) {
      this.#fail(pending, new OutOfTime());
      pending.budget.isOver = true;
    }
    endAll(late);
    // The timer is not stopped when the last request ends, because starting a timer costs as much as a request.
    if (this.size === 0) this.#stopTimer();
  }

  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

function endAll(ended: readonly Pending[]): void {
  const at = monotonicNow();
  for (const { request, serving } of ended) serving.ended(request, at);
}
