import { assertEquals, assertRejects, assertStrictEquals } from "@std/assert";
import { DeadlineExceeded, StoreUnavailable, withDeadline } from "../../src/kv/deadline.ts";
import { VirtualTime } from "../virtual_time.ts";
import { hang } from "./disturbed_kv.ts";

Deno.test("withDeadline() passes the value on when it comes in time, and rejects once the time is up", async () => {
  assertEquals(await withDeadline(Promise.resolve(7), 60_000), 7);
  using time = new VirtualTime();
  const late = withDeadline(hang(), 250);

  await assertRejects(() => time.until(late, 249), Error, "Nothing came");
  await assertRejects(() => time.until(late, 250), DeadlineExceeded, "No answer within 250 ms");
});

Deno.test("withDeadline() rejects with StoreUnavailable and the cause, or with the StoreUnavailable there was", async () => {
  const cause = new TypeError("disk I/O error");
  const unavailable = new StoreUnavailable("inner");
  const failing = (error: Error) =>
    assertRejects(() => withDeadline(Promise.reject(error), 60_000), StoreUnavailable);

  assertStrictEquals((await failing(cause)).cause, cause);
  assertStrictEquals(await failing(unavailable), unavailable);
});
