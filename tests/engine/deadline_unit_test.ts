import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { CommitInDoubt } from "../../src/engine/backend.ts";
import {
  AGAIN,
  DeadlineExceeded,
  retried,
  StoreUnavailable,
  withDeadline,
} from "../../src/engine/deadline.ts";
import { pause } from "../../src/base/time.ts";
import { hang } from "../support/fake_kv.ts";
import { VirtualTime } from "../support/time.ts";

Deno.test("withDeadline() resolves to the value, or rejects once the deadline has passed", async () => {
  assertEquals(await withDeadline(Promise.resolve(7), 60_000), 7);
  using time = new VirtualTime();
  const late = withDeadline(hang(), 250);

  await assertRejects(() => time.until(late, 249), Error, "within 249 ms");
  await assertRejects(() => time.until(late, 250), DeadlineExceeded, "No response within 250 ms");
});

Deno.test("withDeadline() rejects with StoreUnavailable and makes any other error its cause", async () => {
  const cause = new TypeError("disk I/O error");
  const unavailable = new StoreUnavailable("inner");
  const failing = (error: Error) =>
    assertRejects(() => withDeadline(Promise.reject(error), 60_000), StoreUnavailable);

  assertStrictEquals((await failing(cause)).cause, cause);
  assertStrictEquals(await failing(unavailable), unavailable);
});

Deno.test.each<[string, StoreUnavailable, string]>([
  ["its own message", new DeadlineExceeded("No response within 250 ms"), "No response within 250 ms"],
  ["the message of its cause", failed(new TypeError("database or disk is full")), "database or disk is full"],
  [
    "the first line only",
    failed(new TypeError("disk I/O error\nat fn (/srv/src/kv.rs:1)")),
    "disk I/O error",
  ],
  [
    "the message of its cause's cause",
    new CommitInDoubt(() => Promise.reject(), failed(new TypeError("disk I/O error"))),
    "disk I/O error",
  ],
  [
    "its own message if the cause is not an error",
    new StoreUnavailable("The operation failed", { cause: "text" }),
    "The operation failed",
  ],
  [
    "a message in which only the host of a URL is shown",
    failed(
      new TypeError("POST (https://a:b@kv.example:4512/v2/write?token=c#d): https:// and HTTP://[::1]/e."),
    ),
    "POST (kv.example:4512): [URL] and [::1]",
  ],
])("StoreUnavailable.logReason is %s", (_, error, reason) => {
  assertEquals(error.logReason, reason);
});

function failed(cause: Error): StoreUnavailable {
  return new StoreUnavailable("The operation failed", { cause });
}

Deno.test("retried() repeats an attempt until it returns anything but AGAIN, or throws", async () => {
  let attempts = 0;
  const fourth = (result: () => unknown) => () => Promise.resolve(++attempts % 4 === 0 ? result() : AGAIN);

  for (const result of ["done", null, false, undefined]) {
    assertEquals(await retried(fourth(() => result)), result);
  }
  const failing = fourth(() => Promise.reject(new RangeError("no use")));
  await assertRejects(() => retried(failing), RangeError, "no use");

  assertEquals(attempts, 5 * 4);
});

Deno.test("retried() gives up after the deadline", async () => {
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

Deno.test("retried() pauses longer after each attempt, up to 20 ms", async () => {
  using time = new VirtualTime();
  const { random } = Math;
  using _longest = { [Symbol.dispose]: () => Math.random = random };
  Math.random = () => 1;
  const starts: number[] = [];

  await time.until(retried(() => Promise.resolve(starts.push(time.now) < 24 ? AGAIN : 7)), 60_000);

  const pauses = starts.slice(1).map((start, index) => start - (starts[index] ?? 0));
  assertEquals(pauses, Array.from({ length: 23 }, (_, index) => Math.min(index + 1, 20)));
});

Deno.test("pause() resolves after the given time", async () => {
  using time = new VirtualTime();

  await assertRejects(() => time.until(pause(20), 19), Error, "within 19 ms");
  await time.until(pause(20), 20);
});
