import { assertEquals, assertRejects, assertStrictEquals, assertThrows } from "@std/assert";
import { CommitInDoubt } from "../../src/engine/backend.ts";
import {
  AGAIN,
  DeadlineExceeded,
  retried,
  StoreUnavailable,
  withDeadline,
} from "../../src/engine/deadline.ts";
import { CorruptRow, decodeJson, decodeText, encodeText } from "../../src/engine/row.ts";
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

function failed(cause: unknown): StoreUnavailable {
  return new StoreUnavailable("The operation failed", { cause });
}

const URLS = "POST (https://a:b@kv.example:4512/v2/write?token=c#d): https:// and HTTP://[::1]/e.";

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
  ["its own message if the cause is not an error", failed("text"), "The operation failed"],
  [
    "a message in which only the host of a URL is shown",
    failed(new TypeError(URLS)),
    "POST (kv.example:4512): [URL] and [::1]",
  ],
])("StoreUnavailable.logReason is %s", (_, error, reason) => {
  assertEquals(error.logReason, reason);
});

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

Deno.test("retried() pauses longer after each attempt, up to 20 ms, and gives up after the deadline", async () => {
  using time = new VirtualTime();
  const { random } = Math;
  using _longest = { [Symbol.dispose]: () => Math.random = random };
  Math.random = () => 1;
  const starts: number[] = [];
  const attempt = async () => {
    starts.push(time.now);
    if (starts.length > 24) await pause(2_000);
    return AGAIN;
  };

  await assertRejects(() => time.until(retried(attempt), 60_000), StoreUnavailable, "conflicting");

  const pauses = starts.slice(1).map((start, index) => start - (starts[index] ?? 0));
  assertEquals(pauses, [...Array.from({ length: 24 }, (_, at) => Math.min(at + 1, 20)), 2_020, 2_020]);
});

Deno.test("decodeText() reverses encodeText(), and decodeJson() names the table of a row that is not JSON", () => {
  const row = (value: unknown) => ({ key: ["numbers", 1], value, versionstamp: "1" });

  assertEquals(decodeText(row(encodeText("é\n{"))), "é\n{");
  for (
    const [value, kind] of [
      [{ a: 1 }, "text"],
      [new Uint8Array([0x22, 0xff, 0x22]), "text"],
      [encodeText("{"), "JSON"],
    ] as const
  ) {
    assertThrows(() => decodeJson(row(value)), CorruptRow, `A row of numbers is not ${kind}`);
  }
});
