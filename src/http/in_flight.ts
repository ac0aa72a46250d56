/** How many requests are answered at once, and for how long. */
export interface InFlightLimits {
  /** Most requests at once. */
  readonly capacity: number;
  /** Longest time to answer a request in, in ms, but for what is spent waiting for the client itself. */
  readonly budgetMs: number;
  /** Longest time to answer what is in flight in when the service stops, in ms, whatever is waited for. */
  readonly stopMs: number;
}

/** The limits the service runs with: 10,000 requests; 5 s; 3 s. */
export const IN_FLIGHT_LIMITS: InFlightLimits = { capacity: 10_000, budgetMs: 5_000, stopMs: 3_000 };

/** How often it is looked who ran out of time, in ms. */
const TICK = 100;

/** The time that a request has. */
export class Budget {
  /** By `performance.now()`. */
  deadline: number;

  constructor(deadline: number) {
    this.deadline = deadline;
  }

  /** Waits for the client, which costs nothing of the budget. */
  async without<T>(client: Promise<T>): Promise<T> {
    const left = this.deadline - performance.now();
    this.deadline = Infinity;
    try {
      return await client;
    } finally {
      this.deadline = performance.now() + left;
    }
  }
}

/** A request has no time left to be answered in. */
export class OutOfTime extends Error {
  override readonly name = "OutOfTime";
}

/** How a request is answered. */
export interface InTime<Answer, Result> {
  /** When it came, by `performance.now()`. */
  readonly started: number;
  /** What is waited for before any work. */
  readonly ready?: Promise<void> | undefined;
  readonly work: (budget: Budget) => Answer | Promise<Answer>;
  /** Makes the result of what the work comes to. */
  readonly finish: (answer: Answer) => Result;
  /** Makes the result of what kept it from that: OutOfTime, or what the promises reject with. */
  readonly fail: (error: unknown) => Result;
}

/** A promise that is waited for in time, by so many requests for their answer. */
interface Wait<Value> {
  readonly awaited: Promise<Value>;
  readonly inTime: Promise<Value>;
  readonly budget: Budget;
  readonly requests: number;
  readonly giveUp: (reason: OutOfTime) => void;
}

/**
 * The requests that are being answered. Each is answered in time, one way or the other; and the service can
 * wait for the last of them before it stops.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const inFlight = new InFlight({ capacity: 1, budgetMs: 10, stopMs: 10 });
 * const answer = inFlight.answer({
 *   started: performance.now(),
 *   work: () => new Promise<string>(() => {}),
 *   finish: (answer) => answer,
 *   fail: (error) => error instanceof OutOfTime ? "too late" : "failed",
 * });
 * assertEquals(inFlight.isFull, true);
 * assertEquals(await answer, "too late");
 * await inFlight.stop();
 * ```
 */
export class InFlight {
  readonly #limits: InFlightLimits;
  /** By place. A Set's discarded tables would keep dead requests alive from one garbage collection to the next. */
  readonly #waits: (Wait<unknown> | undefined)[] = [];
  readonly #freePlaces: number[] = [];
  readonly #answered: PromiseWithResolvers<void> = Promise.withResolvers();
  /** What requests have begun to wait for together. */
  #shared: Wait<void> | undefined;
  #size = 0;
  #timer: ReturnType<typeof setInterval> | undefined;
  /** When the last request is answered at the latest, by `performance.now()`. */
  #lastEnd = Infinity;

  constructor(limits: InFlightLimits = IN_FLIGHT_LIMITS) {
    this.#limits = limits;
  }

  /** How many requests there are. */
  get size(): number {
    return this.#size;
  }

  /** Whether there are as many as there may be. */
  get isFull(): boolean {
    return this.size >= this.#limits.capacity;
  }

  /** Whether the service stops, so that further requests are to be turned away. */
  get isStopping(): boolean {
    return this.#lastEnd !== Infinity;
  }

  /**
   * Answers a request in time, also if what it waits for is not. Those who wait for the same share a promise, and
   * the time of the first of them.
   */
  answer<Answer, Result>(request: InTime<Answer, Result>): Result | Promise<Result> {
    const { ready, started } = request;
    if (ready === undefined) return this.#begin(request);
    if (this.#shared?.awaited !== ready) this.#shared = this.#wait(ready, this.#budget(started), 0);
    this.#size++;
    return this.#shared.inTime.then(
      () => (this.#size--, this.#begin(request)),
      (error) => (this.#size--, request.fail(error)),
    );
  }

  /** Resolves once every request is answered; that takes hardly longer than the limits say. */
  async stop(): Promise<void> {
    this.#lastEnd = performance.now() + this.#limits.stopMs;
    if (this.size === 0) this.#rest();
    else await this.#answered.promise;
  }

  #begin<Answer, Result>({ started, work, finish, fail }: InTime<Answer, Result>): Result | Promise<Result> {
    const budget = this.#budget(started);
    const answer = work(budget);
    return answer instanceof Promise
      ? this.#wait(answer, budget, 1).inTime.then(finish, fail)
      : finish(answer);
  }

  #budget(started: number): Budget {
    return new Budget(started + this.#limits.budgetMs);
  }

  #wait<Value>(awaited: Promise<Value>, budget: Budget, requests: number): Wait<Value> {
    const { promise: inTime, resolve, reject } = Promise.withResolvers<Value>();
    const wait = { awaited, inTime, budget, requests, giveUp: reject };
    const place = this.#freePlaces.pop() ?? this.#waits.length;
    this.#waits[place] = wait;
    this.#size += requests;
    this.#timer ??= setInterval(() => this.#tick(), TICK);
    awaited.then(
      (value) => (this.#end(place, wait), resolve(value)),
      (error) => (this.#end(place, wait), reject(error)),
    );
    return wait;
  }

  /** Frees a place; what was given up ends again when its work does. */
  #end(place: number, wait: Wait<unknown>): void {
    if (this.#waits[place] !== wait) return;
    this.#waits[place] = undefined;
    this.#freePlaces.push(place);
    this.#size -= wait.requests;
    if (this.#shared === wait) this.#shared = undefined;
  }

  #tick(): void {
    const now = performance.now();
    this.#waits.forEach((wait, place) => {
      if (!wait || Math.min(wait.budget.deadline, this.#lastEnd) > now) return;
      this.#end(place, wait);
      wait.giveUp(new OutOfTime());
    });
    // Not before: a timer costs as much as a request, and the next one is there before long.
    if (this.size === 0) this.#rest();
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.isStopping) this.#answered.resolve();
  }
}
