import { assertEquals } from "@std/assert";
import { setImmediate } from "node:timers/promises";
import { batched, type BatchOptions } from "../../src/engine/batch.ts";

/** Doubles numbers in rounds, which end on demand. */
class Doubler {
  readonly rounds: (readonly number[])[] = [];
  /** Number of rounds that are running. */
  running = 0;
  readonly #results: Promise<number | string>[] = [];
  readonly #double: (number: number) => Promise<number>;
  #gate = Promise.withResolvers<void>();

  constructor(options?: BatchOptions) {
    this.#double = batched(async (numbers: readonly number[]) => {
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

  /** Calls it for these numbers at the same time. */
  async add(...numbers: number[]): Promise<void> {
    this.#results.push(...numbers.map((number) => this.#double(number).catch(String)));
    await setImmediate();
  }

  /** Ends the rounds that have started so far. */
  async endRounds(): Promise<void> {
    this.#gate.resolve();
    this.#gate = Promise.withResolvers();
    await setImmediate();
  }

  /** The results of all calls, in order. */
  results(): Promise<(number | string)[]> {
    return Promise.all(this.#results);
  }
}

Deno.test("batched() joins calls that arrive during a round into the next, and runs one at a time", async () => {
  const doubler = new Doubler();
  await doubler.add(1, 2);
  await doubler.add(3, 4, 5);
  assertEquals([doubler.rounds, doubler.running], [[[1, 2]], 1]);

  await doubler.endRounds();
  assertEquals([doubler.rounds, doubler.running], [[[1, 2], [3, 4, 5]], 1]);
  await doubler.endRounds();
  assertEquals(await doubler.results(), [2, 4, 6, 8, 10]);
});

Deno.test("batched() gives all calls for an item in the same round one shared result", async () => {
  const doubler = new Doubler();
  await doubler.add(1, 2, 1);
  await doubler.add(2, 2);
  for (const _ of doubler.rounds) await doubler.endRounds();

  assertEquals(await doubler.results(), [2, 4, 2, 4, 4]);
  assertEquals(doubler.rounds, [[1, 2], [2]]);
});

Deno.test("batched() rejects only the calls for a failed item, or a whole failed round, and continues", async () => {
  const doubler = new Doubler();
  for (const numbers of [[1, -2, 3], [1, 0], [4]]) {
    await doubler.add(...numbers);
    await doubler.endRounds();
  }

  const [refused, failed] = ["RangeError: -2 is refused", "RangeError: round with 0"];
  assertEquals(await doubler.results(), [2, refused, 6, failed, failed, 8]);
});

Deno.test("batched() gathers calls for a round, unless they have waited for another one", async () => {
  let gathered = 0;
  const doubler = new Doubler({ gather: () => (gathered++, setImmediate()) });
  for (const number of [1, 2, 3, 4]) await doubler.add(number);
  assertEquals([doubler.rounds, gathered], [[[1, 2]], 1]);

  await doubler.endRounds();
  assertEquals([doubler.rounds, gathered], [[[1, 2], [3, 4]], 1]);
  await doubler.endRounds();
  await doubler.add(5);
  assertEquals(gathered, 2);
  await setImmediate();
  await doubler.endRounds();
  assertEquals(await doubler.results(), [2, 4, 6, 8, 10]);
});

Deno.test("batched() lets a round finish gathering when another round ends", async () => {
  const gathering = Promise.withResolvers<void>();
  const waits = [Promise.resolve(), gathering.promise];
  const doubler = new Doubler({ lanes: () => 2, gather: async () => await waits.shift() });
  await doubler.add(1);
  await doubler.add(2);
  await doubler.endRounds();
  await doubler.add(3);
  assertEquals(doubler.rounds, [[1]]);

  gathering.resolve();
  await setImmediate();
  assertEquals(doubler.rounds, [[1], [2, 3]]);
  await doubler.endRounds();
  assertEquals(await doubler.results(), [2, 4, 6]);
});

Deno.test("batched() runs as many rounds at a time as it currently has lanes", async () => {
  let lanes = 2;
  const doubler = new Doubler({ lanes: () => lanes });
  for (const number of [1, 2, 3, 4]) await doubler.add(number);
  assertEquals([doubler.rounds, doubler.running], [[[1], [2]], 2]);

  await doubler.endRounds();
  assertEquals(doubler.rounds, [[1], [2], [3, 4]]);
  lanes = 1;
  for (const number of [5, 6]) await doubler.add(number);
  assertEquals(doubler.rounds.length, 3);

  for (const _ of [1, 2]) await doubler.endRounds();
  assertEquals(await doubler.results(), [2, 4, 6, 8, 10, 12]);
  assertEquals(doubler.rounds, [[1], [2], [3, 4], [5, 6]]);
});
