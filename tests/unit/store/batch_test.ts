import { assertEquals, assertRejects } from "@std/assert";
import { setImmediate } from "node:timers/promises";
import { noMoreArrive } from "../../../src/kv/store.ts";
import { batched, type BatcherOptions } from "../../../src/store/batch.ts";

/** Doubles numbers in rounds, of which each waits until it is let go. */
class Doubler {
  readonly rounds: number[][] = [];
  /** Rounds that run now. */
  running = 0;
  readonly double: (number: number) => Promise<number>;
  #gate = Promise.withResolvers<void>();

  constructor(options?: BatcherOptions) {
    this.double = batched<number, number>(async (round) => {
      this.rounds.push(round.map(({ item }) => item));
      this.running++;
      await this.#gate.promise;
      this.running--;
      for (const { item, resolve } of round) {
        if (item < 0) throw new RangeError(`round with ${item}`);
        resolve(item * 2);
      }
    }, options);
  }

  /** Lets the rounds that started so far end. */
  letGo(): void {
    this.#gate.resolve();
    this.#gate = Promise.withResolvers();
  }
}

Deno.test("batched() joins whatever arrives during a round into the next one, and runs one at a time", async () => {
  const doubler = new Doubler();
  const first = [1, 2].map(doubler.double);
  await setImmediate();
  const second = [3, 4, 5].map(doubler.double);
  await setImmediate();
  assertEquals([doubler.rounds, doubler.running], [[[1, 2]], 1]);

  doubler.letGo();
  assertEquals(await Promise.all(first), [2, 4]);
  await setImmediate();
  assertEquals([doubler.rounds, doubler.running], [[[1, 2], [3, 4, 5]], 1]);
  doubler.letGo();
  assertEquals(await Promise.all(second), [6, 8, 10]);
});

Deno.test("batched() rejects what a round that throws has not settled, nothing else, and goes on", async () => {
  const doubler = new Doubler();
  const [before, ...failing] = [1, -2, 3].map(doubler.double);
  const failures = failing.map((call) => assertRejects(() => call, RangeError, "round with -2"));
  await setImmediate();
  const next = doubler.double(4);
  doubler.letGo();

  assertEquals(await before, 2);
  await Promise.all(failures);
  doubler.letGo();
  assertEquals(await next, 8);
  const later = doubler.double(5);
  await setImmediate();
  doubler.letGo();
  assertEquals(await later, 10);
});

Deno.test.each([
  [false, 3, [1]],
  [true, 3, [3]],
  [true, 20, [9]],
])(
  "batched() that is patient (%j) takes of one call a turn, %i in all, the first round of this size",
  async (patient, calls, sizes) => {
    const doubler = new Doubler(patient ? { gather: noMoreArrive } : {});
    for (let call = 0; call < calls; call++) {
      doubler.double(call);
      await setImmediate();
    }
    for (let turn = 0; turn < 3; turn++) await setImmediate();

    assertEquals(doubler.rounds.map((round) => round.length), [...sizes]);
  },
);

Deno.test("batched() has only those gather who need not wait for another round", async () => {
  let gathered = 0;
  const doubler = new Doubler({ gather: () => (gathered++, Promise.resolve()) });
  const double = async (numbers: readonly number[]) => {
    const doubled = numbers.map((number) => doubler.double(number));
    await setImmediate();
    doubler.letGo();
    await setImmediate();
    return doubled;
  };
  const doubled = [...await double([1, 2]), ...await double([3])];

  assertEquals([doubler.rounds, gathered], [[[1, 2], [3]], 2]);
  doubled.push(doubler.double(4));
  await setImmediate();
  doubled.push(doubler.double(5), doubler.double(6));
  doubler.letGo();
  await setImmediate();
  doubler.letGo();

  assertEquals(await Promise.all(doubled), [2, 4, 6, 8, 10, 12]);
  assertEquals([doubler.rounds, gathered], [[[1, 2], [3], [4], [5, 6]], 3]);
});

Deno.test("batched() lets a round gather to its end though another ends meanwhile", async () => {
  const gathering = Promise.withResolvers<void>();
  const waits = [Promise.resolve(), gathering.promise];
  const doubler = new Doubler({ lanes: () => 2, gather: async () => await waits.shift() });
  const doubled = [doubler.double(1)];
  await setImmediate();
  doubled.push(doubler.double(2));
  await setImmediate();
  doubler.letGo();
  await setImmediate();
  doubled.push(doubler.double(3));
  await setImmediate();
  assertEquals(doubler.rounds, [[1]]);

  gathering.resolve();
  await setImmediate();
  assertEquals(doubler.rounds, [[1], [2, 3]]);
  doubler.letGo();
  assertEquals(await Promise.all(doubled), [2, 4, 6]);
});

Deno.test("batched() asks for the size of a round and the number of lanes each time", async () => {
  let [lanes, size] = [2, 2];
  const doubler = new Doubler({ lanes: () => lanes, size: () => size });
  const doubled = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(doubler.double);
  await setImmediate();
  assertEquals([doubler.rounds, doubler.running], [[[1, 2], [3, 4]], 2]);

  [lanes, size] = [1, 3];
  for (const rounds of [3, 4]) {
    doubler.letGo();
    await setImmediate();
    assertEquals([doubler.rounds.length, doubler.running], [rounds, 1]);
  }
  doubler.letGo();
  assertEquals(await Promise.all(doubled), [2, 4, 6, 8, 10, 12, 14, 16, 18]);
  assertEquals(doubler.rounds, [[1, 2], [3, 4], [5, 6, 7], [8, 9]]);
});

Deno.test("batched() runs as many rounds at a time as it has lanes", async () => {
  const doubler = new Doubler({ lanes: () => 2 });
  const doubled: Promise<number>[] = [];
  for (const number of [1, 2, 3, 4]) {
    doubled.push(doubler.double(number));
    await setImmediate();
  }
  assertEquals([doubler.rounds, doubler.running], [[[1], [2]], 2]);

  doubler.letGo();
  await setImmediate();
  assertEquals(doubler.rounds, [[1], [2], [3, 4]]);
  doubler.letGo();
  assertEquals(await Promise.all(doubled), [2, 4, 6, 8]);
});
