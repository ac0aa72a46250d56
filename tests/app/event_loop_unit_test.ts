import { assertEquals } from "@std/assert";
import { EventLoopDelay } from "../../src/app/event_loop.ts";
import { VirtualTime } from "../support/time.ts";

Deno.test("EventLoopDelay returns the longest delay since the last call, once", async () => {
  await using time = new VirtualTime();
  using delay = new EventLoopDelay();

  await time.advance(1_000);
  assertEquals(delay.take(), 0);
  for (const ms of [300, 750, 200]) {
    await time.advance(50);
    time.now += ms; // As if code ran for so long.
  }
  await time.advance(50);
  assertEquals(delay.take(), 0.7);
  assertEquals(delay.take(), 0);
  // The loop is busy during the call, too.
  time.now += 1_050;
  assertEquals(delay.take(), 1);
  await time.advance(50);
  assertEquals(delay.take(), 0);
});
