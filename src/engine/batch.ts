/** Options of {@linkcode batched}. */
export interface BatchOptions {
  /** Resolves when a round has enough calls. Waiting is worthwhile if a round costs far more than a call. */
  readonly gather?: () => Promise<void>;
  /** Maximum number of rounds at a time; one by default. */
  readonly lanes?: () => number;
}

/**
 * Joins concurrent calls into rounds. Calls that arrive while a round is running wait for the next one. Calls for the
 * same item share its result. A round starts after its calls have arrived, so it never reads anything older than its
 * calls. `run` resolves to a function that returns the result for an item's index. If this function throws, only the
 * calls for that item are rejected.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const rounds: (readonly number[])[] = [];
 * const double = batched((numbers: readonly number[]) => {
 *   rounds.push(numbers);
 *   return Promise.resolve((index) => 2 * (numbers[index] ?? 0));
 * });
 * assertEquals(await Promise.all([double(1), double(2), double(1)]), [2, 4, 2]);
 * assertEquals(rounds, [[1, 2]]);
 * ```
 */
export function batched<Item, Result>(
  run: (items: readonly Item[]) => Promise<(index: number) => Result>,
  { gather, lanes = () => 1 }: BatchOptions = {},
): (item: Item) => Promise<Result> {
  let waiting: Map<Item, PromiseWithResolvers<Result>> = new Map();
  let running = 0;
  let isGathering = false;

  async function runNext(isFull: boolean): Promise<void> {
    isGathering = true;
    await Promise.resolve(); // Calls made in the same turn of the event loop always join.
    if (!isFull) await gather?.();
    isGathering = false;
    const calls = waiting;
    waiting = new Map();
    running++;
    const found = run([...calls.keys()]);
    [...calls.values()].forEach(({ resolve }, index) => resolve(found.then((resultAt) => resultAt(index))));
    await Promise.allSettled([found]);
    running--;
    // Calls that have waited for a round do not wait again for others to join.
    if (waiting.size > 0 && !isGathering) runNext(true);
  }

  return function call(item: Item): Promise<Result> {
    let one = waiting.get(item);
    if (one === undefined) waiting.set(item, one = Promise.withResolvers());
    if (!isGathering && running < lanes()) runNext(false);
    return one.promise;
  };
}
