import { assertEquals, assertRejects } from "@std/assert";
import { AGAIN, pause, retried, StoreUnavailable } from "../../../src/kv/deadline.ts";
import { VirtualTime } from "../../support/time.ts";

Deno.test("retried() repeats an attempt until it comes to something, whatever that is, or throws", async () => {
  let attempts = 0;
  const fourth = (result: () => unknown) => () => Promise.resolve(++attempts % 4 === 0 ? result() : AGAIN);

  for (const result of ["done", null, false, undefined]) {
    assertEquals(await retried(fourth(() => result)), result);
  }
  const failing = fourth(() => Promise.reject(new RangeError("no use")));
  await assertRejects(() => retried(failing), RangeError, "no use");

  assertEquals(attempts, 5 * 4);
});

Deno.test("retried() gives up when its time is spent", async () => {
  using time = new VirtualTime();
  let attempts = 0;
  const attempt = async () => {
    attempts++;
    await pause(2_000);
    return AGAIN;
  };

  await assertRejects(() => time.until(retried(attempt), 60_000), StoreUnavailable, "conflicting");

  assertEquals(attempts, 3);
});

Deno.test("retried() pauses longer from attempt to attempt, up to 20 ms", async () => {
  using time = new VirtualTime();
  const { random } = Math;
  using _longest = { [Symbol.dispose]: () => Math.random = random };
  Math.random = () => 1;
  const starts: number[] = [];

  await time.until(retried(() => Promise.resolve(starts.push(time.now) < 24 ? AGAIN : 7)), 60_000);

  const pauses = starts.slice(1).map((start, index) => start - (starts[index] ?? 0));
  assertEquals(pauses, Array.from({ length: 23 }, (_, index) => Math.min(index + 1, 20)));
});

Deno.test("pause() resolves after its ms", async () => {
  using time = new VirtualTime();

  await assertRejects(() => time.until(pause(20), 19), Error, "Nothing came");
  await time.until(pause(20), 20);
});
