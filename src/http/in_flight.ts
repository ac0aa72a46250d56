/** How many requests are answered at once, and for how long. */
export interface InFlightLimits {
  /** Most requests at once. */
  readonly capacity: number;
  /** Longest time to answer a request in, in ms, not counting what is spent waiting for its client. */
  readonly budgetMs: number;
  /** Longest time to answer what is in flight in when the service stops, in ms, whatever is waited for. */
  readonly stopMs: number;
}

/** The limits the service runs with: 10,000 requests; 5 s; 3 s. */
export const IN_FLIGHT_LIMITS: InFlightLimits = { capacity: 10_000, budgetMs: 5_000, stopMs: 3_000 };

/** How often requests are looked for that have run out of time, in ms. */
const TICK = 100;

/** A request has no time left to be answered in. */
export class OutOfTime extends Error {
  override readonly name = "OutOfTime";
}

/** The time that a request has. */
export class Budget {
  /** By `performance.now()`. */
  deadline: number;
  /** Whether the request was given up. */
  isOver = false;

  constructor(deadline: number) {
    this.deadline = deadline;
  }

  /**
   * Makes sure that the request was not given up: its client may have sent it again since, so nothing more is begun.
   *
   * @throws {OutOfTime}
   */
  check(): void {
    if (this.isOver) throw new OutOfTime();
  }

  /** Waits for the client, which costs nothing of the budget. */
  pausedFor<T>(client: Promise<T>): Promise<T> {
    const left = this.deadline - performance.now();
    const goOn = () => void (this.deadline = performance.now() + left);
    this.deadline = Infinity;
    client.then(goOn, goOn);
    return client;
  }
}

/** A request to answer. */
export interface Task<Answer, Result> {
  /** When it came, by `performance.now()`. */
  readonly started: number;
  /** What is waited for before any work. */
  readonly ready?: Promise<void> | undefined;
  readonly work: (budget: Budget) => Answer | Promise<Answer>;
  /** Makes the result of what the work comes to. */
  readonly finish: (answer: Answer) => Result;
  /** Makes the result if there is no answer, because of OutOfTime or of what was thrown. */
  readonly fail: (error: unknown) => Result;
  /** Called with what the work throws after the request was given up. */
  readonly late?: (error: unknown) => void;
}

/** A request that is waited for. */
interface Wait {
  readonly budget: Budget;
  readonly giveUp: (reason: OutOfTime) => void;
  /** Its index among the others. */
  index: number;
}

/**
 * The requests that are being answered. Each is answered or given up in time, by one timer for all of them, and the
 * service can wait for the last before it stops. An answer that is there at once costs neither a promise nor a timer.
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
  /** An array: the discarded tables of a Set would keep dead requests alive from one garbage collection to the next. */
  readonly #waits: Wait[] = [];
  readonly #empty: PromiseWithResolvers<void> = Promise.withResolvers();
  /** When the service stops waiting, by `performance.now()`. */
  #end = Infinity;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(limits: InFlightLimits = IN_FLIGHT_LIMITS) {
    this.#limits = limits;
  }

  /** How many requests there are. */
  get size(): number {
    return this.#waits.length;
  }

  /** Whether there are as many as there may be. */
  get isFull(): boolean {
    return this.size >= this.#limits.capacity;
  }

  /** Whether the service stops, so that further requests are to be turned away. */
  get isStopping(): boolean {
    return this.#end !== Infinity;
  }

  /** Answers a request in time, even if what it waits for never comes. */
  answer<Answer, Result>(
    { started, ready, work, finish, fail, late = () => {} }: Task<Answer, Result>,
  ): Result | Promise<Result> {
    const budget = new Budget(started + this.#limits.budgetMs);
    const begin = () => (budget.check(), work(budget));
    const refuse = (error: unknown) => (budget.check(), Promise.reject(error));
    let answer: Answer | Promise<Answer>;
    try {
      answer = ready ? ready.then(begin, refuse) : work(budget);
    } catch (error) {
      return fail(error);
    }
    if (!(answer instanceof Promise)) return finish(answer);
    return this.#inTime(answer, budget, late).then(finish, fail);
  }

  /** Resolves once every request is answered or given up, which takes no longer than the limits say. */
  async stop(): Promise<void> {
    this.#end = performance.now() + this.#limits.stopMs;
    if (this.size === 0) this.#empty.resolve();
    await this.#empty.promise;
    this.#stopTimer();
  }

  /** Settles as the promise does, or rejects with OutOfTime. */
  #inTime<Answer>(
    answer: Promise<Answer>,
    budget: Budget,
    late: (error: unknown) => void,
  ): Promise<Answer> {
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const wait = { budget, giveUp: reject, index: this.size };
    this.#waits.push(wait);
    this.#timer ??= setInterval(() => this.#giveUpLate(), TICK);
    const leave = () => budget.isOver || this.#remove(wait);
    answer.then(
      (value) => (resolve(value), leave()),
      (error) => ((budget.isOver ? late : reject)(error), leave()),
    );
    return promise;
  }

  #remove({ index }: Wait): void {
    const last = this.#waits.pop();
    if (last && last.index !== index) {
      this.#waits[index] = last;
      last.index = index;
    }
    if (this.size === 0 && this.isStopping) this.#empty.resolve();
  }

  #giveUpLate(): void {
    const now = performance.now();
    const isLate = ({ budget: { deadline } }: Wait) => Math.min(deadline, this.#end) <= now;
    for (const wait of this.#waits.filter(isLate)) {
      wait.budget.isOver = true;
      wait.giveUp(new OutOfTime());
      this.#remove(wait);
    }
    // Not at once: a timer costs as much as a request, and the next one is there before long.
    if (this.size === 0) this.#stopTimer();
  }

  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
