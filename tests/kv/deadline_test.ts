import {
  assertEquals,
  assertGreater,
  assertInstanceOf,
  assertRejects,
  assertStrictEquals,
} from "@std/assert";
import { KV_DEADLINE, StoreUnavailable, withDeadline } from "../../src/kv/deadline.ts";
import { retried } from "../../src/kv/retry.ts";
import { hang } from "./disturbed_kv.ts";

Deno.test("withDeadline() passes the value on when it comes in time", async () => {
  assertEquals(await withDeadline(Promise.resolve(7), 60_000), 7);
});

Deno.test("withDeadline() rejects when the promise never settles", async () => {
  await assertRejects(() => withDeadline(hang(), 1), StoreUnavailable, "No answer within 1 ms");
});

Deno.test("withDeadline() rejects with StoreUnavailable, and the cause, when the promise rejects", async () => {
  const cause = new TypeError("disk I/O error");

  const error = await assertRejects(() => withDeadline(Promise.reject(cause), 60_000), StoreUnavailable);

  assertStrictEquals(error.cause, cause);
});

Deno.test("withDeadline() passes a StoreUnavailable on as it is", async () => {
  const unavailable = new StoreUnavailable("inner");

  const error = await assertRejects(
    () => withDeadline(Promise.reject(unavailable), 60_000),
    StoreUnavailable,
  );

  assertStrictEquals(error, unavailable);
});

Deno.test("retried() repeats an attempt until it comes to something", async () => {
  let attempts = 0;

  const result = await retried(() => Promise.resolve(++attempts === 4 ? "done" : undefined));

  assertEquals(result, "done");
  assertEquals(attempts, 4);
});

Deno.test("retried() takes null and false for results", async () => {
  assertEquals(await retried(() => Promise.resolve(null)), null);
  assertEquals(await retried(() => Promise.resolve(false)), false);
});

Deno.test("retried() does not repeat an attempt that throws", async () => {
  let attempts = 0;

  const error = await retried<never>(() => {
    attempts++;
    throw new RangeError("no use");
  }).catch((error) => error);

  assertInstanceOf(error, RangeError);
  assertEquals(attempts, 1);
});

Deno.test("retried() gives up after some attempts when none comes to anything", async () => {
  using _noPause = replaced(Math, "random", () => 0);
  let attempts = 0;

  await assertRejects(() => retried(() => Promise.resolve(void attempts++)), StoreUnavailable);

  assertGreater(attempts, 100);
});

Deno.test("retried() gives up when an attempt that came to nothing took longer than the deadline", async () => {
  let now = 0;
  using _clock = replaced(performance, "now", () => now);
  let attempts = 0;

  await assertRejects(
    () =>
      retried(() => {
        now += KV_DEADLINE * 0.6;
        return Promise.resolve(void attempts++);
      }),
    StoreUnavailable,
  );

  assertEquals(attempts, 2);
});

function replaced<Name extends string, Value>(
  object: Record<Name, Value>,
  name: Name,
  value: Value,
): Disposable {
  const original = object[name];
  object[name] = value;
  return { [Symbol.dispose]: () => object[name] = original };
}
