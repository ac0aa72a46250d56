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

/**
 * A request that is waited for. The function is not the budget's own: V8 would then allocate for long life what a
 * request leaves behind, and each garbage collection would carry a quarter of it along.
 */
interface Waiting {
  readonly budget: Budget;
  /** Answers it at once. */
  readonly giveUp: () => void;
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
 * const never = () => new Promise<string>(() => {});
 * const answer = inFlight.answer(never, () => "too late", performance.now());
 * assertEquals(inFlight.isFull, true);
 * assertEquals(await answer, "too late");
 * ```
 */
export class InFlight {
  readonly #limits: InFlightLimits;
  /** By place. A Set's discarded tables would keep dead requests alive from one garbage collection to the next. */
  readonly #waiting: (Waiting | undefined)[] = [];
  readonly #freePlaces: number[] = [];
  readonly #answered: PromiseWithResolvers<void> = Promise.withResolvers();
  #timer: ReturnType<typeof setInterval> | undefined;
  /** When the last request is answered at the latest, by `performance.now()`. */
  #end = Infinity;

  constructor(limits: InFlightLimits = IN_FLIGHT_LIMITS) {
    this.#limits = limits;
  }

  /** How many requests there are. */
  get size(): number {
    return this.#waiting.length - this.#freePlaces.length;
  }

  /** Whether there are as many as there may be. */
  get isFull(): boolean {
    return this.size >= this.#limits.capacity;
  }

  /** Whether the service stops, so that further requests are to be turned away. */
  get isStopping(): boolean {
    return this.#end !== Infinity;
  }

  /**
   * What `work` comes to, or what `giveUp` returns when that takes too long after `started`, by
   * `performance.now()`.
   */
  answer<Answer>(
    work: (budget: Budget) => Answer | Promise<Answer>,
    giveUp: () => Answer,
    started: number,
  ): Answer | Promise<Answer> {
    const budget = new Budget(started + this.#limits.budgetMs);
    const answer = work(budget);
    return answer instanceof Promise ? this.#inTime(answer, budget, giveUp) : answer;
  }

  #inTime<Answer>(answer: Promise<Answer>, budget: Budget, giveUp: () => Answer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const place = this.#freePlaces.pop() ?? this.#waiting.length;
      const waiting = { budget, giveUp: () => resolve(giveUp()) };
      this.#waiting[place] = waiting;
      this.#timer ??= setInterval(() => this.#giveUpLate(), TICK);
      answer.then(
        (answer) => (this.#leave(place, waiting), resolve(answer)),
        (error) => (this.#leave(place, waiting), reject(error)),
      );
    });
  }

  /** Resolves once every request is answered; that takes no longer than the limits say. */
  async stop(): Promise<void> {
    this.#end = performance.now() + this.#limits.stopMs;
    if (this.size > 0) await this.#answered.promise;
  }

  /** Makes room for another; what is given up leaves again when its work ends. */
  #leave(place: number, waiting: Waiting): void {
    if (this.#waiting[place] !== waiting) return;
    this.#waiting[place] = undefined;
    this.#freePlaces.push(place);
    if (this.size === 0) this.#rest();
  }

  #giveUpLate(): void {
    const now = performance.now();
    this.#waiting.forEach((waiting, place) => {
      if (!waiting || Math.min(waiting.budget.deadline, this.#end) > now) return;
      waiting.giveUp();
      this.#leave(place, waiting);
    });
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    if (this.isStopping) this.#answered.resolve();
  }
}
