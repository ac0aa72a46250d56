/** A call that waits in a batcher for its round. */
export interface Waiting<Item, Result> {
  readonly item: Item;
  resolve(result: Result): void;
  reject(reason: unknown): void;
}

/** How a batcher forms its rounds. */
export interface BatcherOptions {
  /**
   * Resolves when a round has enough calls, as `count` tells. Worth it where a round costs far more than a call.
   */
  readonly gather?: (count: () => number) => Promise<void>;
  /** How many rounds may run at a time; by default one. */
  readonly lanes?: () => number;
  /** How many calls a round may have; by default all that wait. */
  readonly size?: () => number;
}

/**
 * Joins concurrent calls: while one round runs, whatever arrives waits and goes into the next.
 * A round starts after its calls arrived, so what it reads is never older than the call. It settles
 * its calls one by one; those it leaves are rejected with what it throws.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const rounds: number[][] = [];
 * const double = batched<number, number>((round) => {
 *   rounds.push(round.map(({ item }) => item));
 *   for (const { item, resolve } of round) resolve(item * 2);
 *   return Promise.resolve();
 * });
 * assertEquals(await Promise.all([double(1), double(2), double(3)]), [2, 4, 6]);
 * assertEquals(rounds, [[1, 2, 3]]);
 * ```
 */
export function batched<Item, Result>(
  run: (round: readonly Waiting<Item, Result>[]) => Promise<void>,
  { gather, lanes = () => 1, size = () => Infinity }: BatcherOptions = {},
): (item: Item) => Promise<Result> {
  const waiting: Waiting<Item, Result>[] = [];
  let running = 0;
  let isGathering = false;

  async function drain(haveWaited = false): Promise<void> {
    isGathering = true;
    await Promise.resolve(); // Calls of the same turn of the event loop come along in any case.
    if (!haveWaited) await gather?.(() => waiting.length);
    isGathering = false;
    while (waiting.length > 0 && running < lanes()) runRound(waiting.splice(0, size()));
  }

  async function runRound(round: readonly Waiting<Item, Result>[]): Promise<void> {
    running++;
    try {
      await run(round);
    } catch (error) {
      for (const { reject } of round) reject(error);
    }
    running--;
    // What had to wait for a round has company enough.
    if (waiting.length > 0 && !isGathering) drain(true);
  }

  return function call(item: Item): Promise<Result> {
    const { promise, resolve, reject } = Promise.withResolvers<Result>();
    waiting.push({ item, resolve, reject });
    if (!isGathering && running < lanes()) drain();
    return promise;
  };
}

/** Settles calls with what `find` returns or throws; others of their round are not affected. */
export function tell<Found>(waiting: readonly Waiting<unknown, Found>[], find: () => Found): void {
  try {
    const found = find();
    for (const { resolve } of waiting) resolve(found);
  } catch (error) {
    for (const { reject } of waiting) reject(error);
  }
}
