/** How calls become rounds. */
export interface BatchOptions {
  /** Resolves when a round has enough calls. Worth it if a round costs far more than a call. */
  readonly gather?: () => Promise<void>;
  /** How many rounds may run at a time; by default one. */
  readonly lanes?: () => number;
}

/**
 * Joins concurrent calls: what arrives while a round runs waits and goes into the next. Calls for the same item share its
 * result. A round starts after its calls arrived, so what it reads is never older than they are. It resolves to a
 * function that finds the result of an item by its index. If that throws, only calls for this item are rejected.
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
    await Promise.resolve(); // Calls of the same turn of the event loop come along in any case.
    if (!isFull) await gather?.();
    isGathering = false;
    const calls = waiting;
    waiting = new Map();
    running++;
    const found = run([...calls.keys()]);
    [...calls.values()].forEach(({ resolve }, index) => resolve(found.then((resultAt) => resultAt(index))));
    await Promise.allSettled([found]);
    running--;
    // What had to wait for a round has company enough.
    if (waiting.size > 0 && !isGathering) runNext(true);
  }

  return function call(item: Item): Promise<Result> {
    let one = waiting.get(item);
    if (one === undefined) waiting.set(item, one = Promise.withResolvers());
    if (!isGathering && running < lanes()) runNext(false);
    return one.promise;
  };
}
