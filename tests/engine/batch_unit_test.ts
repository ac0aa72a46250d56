import { assertEquals } from "@std/assert";
import { setImmediate } from "node:timers/promises";
import { batched, type BatchOptions } from "../../src/engine/batch.ts";

/** Doubles numbers in rounds, which end on demand. */
class Doubler {
  readonly rounds: (readonly number[])[] = [];
  /** Number of rounds that are running. */
  running = 0;
  readonly double: (number: number) => Promise<number>;
  #gate = Promise.withResolvers<void>();

  constructor(options?: BatchOptions) {
    this.double = batched(async (numbers: readonly number[]) => {
      this.rounds.push(numbers);
      this.running++;
      await this.#gate.promise;
      this.running--;
      if (numbers.includes(0)) throw new RangeError("round with 0");
      return (index) => {
        const number = numbers[index] ?? 0;
        if (number < 0) throw new RangeError(`${number} is refused`);
        return number * 2;
      };
    }, options);
  }

  /** Ends the rounds that have started so far. */
  endRounds(): void {
    this.#gate.resolve();
    this.#gate = Promise.withResolvers();
  }
}

Deno.test("batched() joins calls that arrive during a round into the next, and runs one at a time", async () => {
  const doubler = new Doubler();
  const first = [1, 2].map(doubler.double);
  await setImmediate();
  const second = [3, 4, 5].map(doubler.double);
  await setImmediate();
  assertEquals([doubler.rounds, doubler.running], [[[1, 2]], 1]);

  doubler.endRounds();
  assertEquals(await Promise.all(first), [2, 4]);
  await setImmediate();
  assertEquals([doubler.rounds, doubler.running], [[[1, 2], [3, 4, 5]], 1]);
  doubler.endRounds();
  assertEquals(await Promise.all(second), [6, 8, 10]);
});

Deno.test("batched() gives all calls for an item in the same round one shared result", async () => {
  const doubler = new Doubler();
  const first = [1, 2, 1].map(doubler.double);
  await setImmediate();
  const second = [2, 2].map(doubler.double);
  doubler.endRounds();

  assertEquals(await Promise.all(first), [2, 4, 2]);
  await setImmediate();
  doubler.endRounds();
  assertEquals(await Promise.all(second), [4, 4]);
  assertEquals(doubler.rounds, [[1, 2], [2]]);
});

Deno.test("batched() rejects only the calls for a failed item, or a whole failed round, and continues", async () => {
  const doubler = new Doubler();
  const round = async (numbers: readonly number[]) => {
    const calls = Promise.allSettled(numbers.map(doubler.double));
    await setImmediate();
    doubler.endRounds();
    return (await calls).map((call) => call.status === "fulfilled" ? call.value : `${call.reason}`);
  };

  assertEquals(await round([1, -2, 3]), [2, "RangeError: -2 is refused", 6]);
  assertEquals(await round([1, 0]), ["RangeError: round with 0", "RangeError: round with 0"]);
  assertEquals(await round([4]), [8]);
});

Deno.test.each<[BatchOptions, number[][]]>([
  [{}, [[1], [2, 3]]],
  [{ gather: () => setImmediate() }, [[1, 2], [3]]],
])("batched() starts a round when its calls have gathered: %j", async (options, rounds) => {
  const doubler = new Doubler(options);
  for (const number of [1, 2, 3]) {
    doubler.double(number);
    await setImmediate();
  }
  doubler.endRounds();
  await setImmediate();

  assertEquals(doubler.rounds, rounds);
});

Deno.test("batched() does not gather for a round whose calls waited for another one", async () => {
  let gathered = 0;
  const doubler = new Doubler({ gather: () => (gathered++, Promise.resolve()) });
  const double = async (numbers: readonly number[]) => {
    const doubled = numbers.map((number) => doubler.double(number));
    await setImmediate();
    doubler.endRounds();
    await setImmediate();
    return doubled;
  };
  const doubled = [...await double([1, 2]), ...await double([3])];

  assertEquals([doubler.rounds, gathered], [[[1, 2], [3]], 2]);
  doubled.push(doubler.double(4));
  await setImmediate();
  doubled.push(doubler.double(5), doubler.double(6));
  doubler.endRounds();
  await setImmediate();
  doubler.endRounds();

  assertEquals(await Promise.all(doubled), [2, 4, 6, 8, 10, 12]);
  assertEquals([doubler.rounds, gathered], [[[1, 2], [3], [4], [5, 6]], 3]);
});

Deno.test("batched() lets a round finish gathering when another round ends", async () => {
  const gathering = Promise.withResolvers<void>();
  const waits = [Promise.resolve(), gathering.promise];
  const doubler = new Doubler({ lanes: () => 2, gather: async () => await waits.shift() });
  const doubled = [doubler.double(1)];
  await setImmediate();
  doubled.push(doubler.double(2));
  await setImmediate();
  doubler.endRounds();
  await setImmediate();
  doubled.push(doubler.double(3));
  await setImmediate();
  assertEquals(doubler.rounds, [[1]]);

  gathering.resolve();
  await setImmediate();
  assertEquals(doubler.rounds, [[1], [2, 3]]);
  doubler.endRounds();
  assertEquals(await Promise.all(doubled), [2, 4, 6]);
});

Deno.test("batched() runs as many rounds at a time as it currently has lanes", async () => {
  let lanes = 2;
  const doubler = new Doubler({ lanes: () => lanes });
  const doubled: Promise<number>[] = [];
  const add = async (...numbers: number[]) => {
    doubled.push(...numbers.map(doubler.double));
    await setImmediate();
  };
  for (const number of [1, 2, 3, 4]) await add(number);
  assertEquals([doubler.rounds, doubler.running], [[[1], [2]], 2]);

  doubler.endRounds();
  await setImmediate();
  assertEquals(doubler.rounds, [[1], [2], [3, 4]]);
  lanes = 1;
  for (const number of [5, 6]) await add(number);
  assertEquals(doubler.rounds.length, 3);

  for (let round = 0; round < 2; round++) {
    doubler.endRounds();
    await setImmediate();
  }
  assertEquals(await Promise.all(doubled), [2, 4, 6, 8, 10, 12]);
  assertEquals(doubler.rounds, [[1], [2], [3, 4], [5, 6]]);
});
