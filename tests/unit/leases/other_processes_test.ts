import { assertEquals } from "@std/assert";
import { OtherProcesses } from "../../../src/leases/other_processes.ts";
import { VirtualTime } from "../../support/time.ts";

Deno.test("OtherProcesses.awaitPlacesUntil() has three seconds of patience for each window", async () => {
  using time = new VirtualTime();
  const others = new OtherProcesses();
  const awaited: boolean[] = [];

  for (
    const [ms, windowEnd] of [[0, 60_000], [2_999, 60_000], [0, 120_000], [2_999, 120_000], [1, 60_000]]
  ) {
    await time.advance(ms ?? 0);
    awaited.push(others.awaitPlacesUntil(windowEnd ?? 0));
  }
  others.stopAwaiting();
  awaited.push(others.awaitPlacesUntil(120_000));

  assertEquals(awaited, [true, true, true, true, false, true]);
});
