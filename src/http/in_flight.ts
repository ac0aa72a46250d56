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
  readonly begin: () => void;
  readonly fail: (error: unknown) => void;
  /** Its index among the others. */
  index: number;
}

/** Requests that wait for the same promise before they begin. */
interface Round {
  readonly ready: Promise<void>;
  readonly waits: Wait[];
}

/**
 * The requests that are being answered. Each is answered or given up in time, by one timer for all of them, and the
 * service can wait for the last before it stops. An answer that is there at once costs neither a promise nor a timer, and
 * requests that wait for the same promise begin in one continuation of it.
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
  #round: Round | undefined;
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
  answer<Answer, Result>(task: Task<Answer, Result>): Result | Promise<Result> {
    const { started, ready, work, finish, fail } = task;
    const budget = new Budget(started + this.#limits.budgetMs);
    if (ready) return this.#inTime(task, budget, () => work(budget));
    try {
      const answer = work(budget);
      return answer instanceof Promise ? this.#inTime(task, budget, () => answer) : finish(answer);
    } catch (error) {
      return fail(error);
    }
  }

  /** Resolves once every request is answered or given up, which takes no longer than the limits say. */
  async stop(): Promise<void> {
    this.#end = performance.now() + this.#limits.stopMs;
    if (this.size === 0) this.#empty.resolve();
    await this.#empty.promise;
    this.#stopTimer();
  }

  /** Settles by the answer, by a failure, or by being given up, whichever is first. */
  #inTime<Answer, Result>(
    { ready, finish, fail, late }: Task<Answer, Result>,
    budget: Budget,
    work: () => Answer | Promise<Answer>,
  ): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    const settle = (result: () => Result) => {
      this.#remove(wait);
      try {
        resolve(result());
      } catch (error) {
        reject(error);
      }
    };
    const succeed = (answer: Answer) => budget.isOver || settle(() => finish(answer));
    const wait: Wait = {
      budget,
      begin() {
        try {
          const answer = work();
          if (answer instanceof Promise) answer.then(succeed, wait.fail);
          else succeed(answer);
        } catch (error) {
          wait.fail(error);
        }
      },
      fail: (error) => budget.isOver ? late?.(error) : settle(() => fail(error)),
      index: this.size,
    };
    this.#waits.push(wait);
    this.#timer ??= setInterval(() => this.#giveUpLate(), TICK);
    if (ready) this.#beginWhen(ready, wait);
    else wait.begin();
    return promise;
  }

  #beginWhen(ready: Promise<void>, wait: Wait): void {
    if (this.#round?.ready !== ready) {
      const round: Round = { ready, waits: [] };
      this.#round = round;
      const forEach = (settle: (wait: Wait) => void) => {
        if (this.#round === round) this.#round = undefined;
        for (const wait of round.waits) if (!wait.budget.isOver) settle(wait);
      };
      ready.then(() => forEach((wait) => wait.begin()), (error) => forEach((wait) => wait.fail(error)));
    }
    this.#round.waits.push(wait);
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
      wait.fail(new OutOfTime());
      wait.budget.isOver = true;
    }
    // Not at once: a timer costs as much as a request, and the next one is there before long.
    if (this.size === 0) this.#stopTimer();
  }

  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}

/**
 * What `use` makes of a value: at once if the value is there, because a promise costs more than most of what is done
 * with it.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(whenReady(2, (value) => value * 2), 4);
 * assertEquals(await whenReady(Promise.resolve(2), (value) => value * 2), 4);
 * ```
 */
export function whenReady<Value, Result>(
  value: Value | Promise<Value>,
  use: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return value instanceof Promise ? value.then(use) : use(value);
}
