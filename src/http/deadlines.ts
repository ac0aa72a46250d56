/** How often those are looked for who ran out of time, in ms. */
const TICK = 100;

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
   * Makes sure that the request was not given up: its client may have asked again since, and nothing is to be begun.
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

/** A request has no time left to be answered in. */
export class OutOfTime extends Error {
  override readonly name = "OutOfTime";
}

/** A promise that is waited for in time. */
interface Wait {
  readonly budget: Budget;
  readonly giveUp: (reason: OutOfTime) => void;
}

/** Waits for many promises at a time, each as long as its budget allows. One timer serves them all. */
export class Deadlines {
  /** When the last wait ends at the latest, by `performance.now()`, whatever its budget says. */
  last: number = Infinity;
  /** By index. A Set's discarded tables would keep dead requests alive from one garbage collection to the next. */
  readonly #waits: (Wait | undefined)[] = [];
  readonly #freeIndices: number[] = [];
  #timer: ReturnType<typeof setInterval> | undefined;

  /** Settles as the promise does, or rejects with OutOfTime; `late` is told what comes after that. */
  inTime<Value>(
    awaited: Promise<Value>,
    budget: Budget,
    late: (error: unknown) => void = () => {},
  ): Promise<Value> {
    const { promise, resolve, reject } = Promise.withResolvers<Value>();
    const wait = { budget, giveUp: reject };
    const index = this.#freeIndices.pop() ?? this.#waits.length;
    this.#waits[index] = wait;
    this.#timer ??= setInterval(() => this.#tick(), TICK);
    awaited.then(
      (value) => (this.#free(index, wait), resolve(value)),
      (error) => this.#free(index, wait) ? reject(error) : late(error),
    );
    return promise;
  }

  /** Looks for nobody any more, until there is another wait. */
  rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** Frees an index, unless what was given up comes here again when it settles. */
  #free(index: number, wait: Wait): boolean {
    if (this.#waits[index] !== wait) return false;
    this.#waits[index] = undefined;
    this.#freeIndices.push(index);
    return true;
  }

  #tick(): void {
    const now = performance.now();
    this.#waits.forEach((wait, index) => {
      if (!wait || Math.min(wait.budget.deadline, this.last) > now) return;
      this.#free(index, wait);
      wait.budget.isOver = true;
      wait.giveUp(new OutOfTime());
    });
    // Not before: a timer costs as much as a request, and the next one is there before long.
    if (this.#freeIndices.length === this.#waits.length) this.rest();
  }
}
