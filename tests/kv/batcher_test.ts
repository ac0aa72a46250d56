import { assertEquals, assertRejects } from "@std/assert";
import { batched, type Waiting } from "../../src/kv/batcher.ts";

type Round = readonly Waiting<number, number>[];

function items(round: Round): number[] {
  return round.map(({ item }) => item);
}

function settle(round: Round): void {
  for (const { item, resolve } of round) resolve(item * 2);
}

Deno.test("batched() joins whatever arrives during a round into the next one", async () => {
  const rounds: number[][] = [];
  const started = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const double = batched<number, number>(async (round) => {
    rounds.push(items(round));
    started.resolve();
    await gate.promise;
    settle(round);
  });

  const first = [double(1), double(2)];
  await started.promise;
  const second = [double(3), double(4), double(5)];
  assertEquals(rounds, [[1, 2]]);
  gate.resolve();

  assertEquals(await Promise.all([...first, ...second]), [2, 4, 6, 8, 10]);
  assertEquals(rounds, [[1, 2], [3, 4, 5]]);
});

Deno.test("batched() never runs two rounds at once", async () => {
  let running = 0;
  let most = 0;
  const double = batched<number, number>(async (round) => {
    most = Math.max(most, ++running);
    await Promise.resolve();
    running--;
    settle(round);
  });

  const chain = async (item: number) => [await double(item), await double(item), await double(item)];
  assertEquals(await Promise.all([chain(1), chain(2)]), [[2, 2, 2], [4, 4, 4]]);

  assertEquals(most, 1);
});

Deno.test("batched() rejects exactly the calls of a round that throws, and goes on", async () => {
  const rounds: number[][] = [];
  const started = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const double = batched<number, number>(async (round) => {
    rounds.push(items(round));
    started.resolve();
    await gate.promise;
    if (items(round).includes(1)) throw new RangeError("round of 1");
    settle(round);
  });

  const failing = [double(1), double(2)].map((call) => assertRejects(() => call, RangeError, "round of 1"));
  await started.promise;
  const next = double(3);
  gate.resolve();

  await Promise.all(failing);
  assertEquals(await next, 6);
  assertEquals(await double(4), 8);
  assertEquals(rounds, [[1, 2], [3], [4]]);
});

Deno.test("batched() leaves what a round settled before it threw as it is", async () => {
  const double = batched<number, number>(([first]) => {
    first?.resolve(7);
    throw new RangeError("after the first");
  });

  const [first, second] = [double(1), double(2)];

  assertEquals(await first, 7);
  await assertRejects(() => second, RangeError, "after the first");
});
