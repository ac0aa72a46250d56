import { assertEquals } from "@std/assert";
import {
  earlier,
  FUTURE,
  later,
  monotonicNow,
  type MonotonicTime,
  msBetween,
  msSince,
  PAST,
  plus,
} from "../../src/base/mod.ts";
import { VirtualTime } from "../support/time.ts";

Deno.test("MonotonicTime compares only with its like, and is no number", async () => {
  await using time = new VirtualTime();
  const start = monotonicNow();
  const end = plus(start, 250);

  assertEquals([start < end, PAST < start, FUTURE > end, earlier(start, end), later(start, end)], [
    ...[true, true, true, start, end],
  ]);
  assertEquals([msBetween(start, end), msBetween(end, start)], [250, -250]);
  await time.advance(400);
  assertEquals([msSince(start), msSince(end), msSince(PAST)], [400, 150, Infinity]);
});

/** Each of these lines is an error of types: `deno task check` fails if one no longer is. */
export function mixClocks(at: MonotonicTime, now: number): readonly unknown[] {
  // @ts-expect-error: A time in ms since the epoch is not one of the monotonic clock.
  const wrong: MonotonicTime = now;
  // @ts-expect-error: Nor the other way round.
  const alsoWrong: number = at;
  // @ts-expect-error: They do not compare.
  const isLater = at > now;
  // @ts-expect-error: Nobody calculates with them.
  const sum = at + 5_000;
  return [wrong, alsoWrong, isLater, sum];
}
