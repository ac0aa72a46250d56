import { assertEquals } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { PORTABLE_CHECKS } from "../../src/engine/store.ts";
import { RecordingService } from "../support/harness.ts";

Deno.test.each([
  ["far", PORTABLE_CHECKS, true],
  ["local", PORTABLE_CHECKS + 1, false],
])("RoundTrip.isFar is correct if a slow KV is %s", async (_, maxChecks, isFar) => {
  await using service = await RecordingService.open({ maxChecks });
  const { reads } = service.store;
  assertEquals([reads.ms, reads.isFar], [0, false]);

  service.disturbance = { read: () => pause(100) };
  for (let count = 0; count < 8; count++) await service.time.until(service.store.get(["row"]), 1_000);
  service.disturbance = {};

  assertEquals([reads.ms > 50, reads.isFar], [true, isFar]);
});
