import { assertEquals } from "@std/assert";
import { Store } from "../../../src/engine/store.ts";
import { Versions } from "../../../src/engine/versions.ts";
import { pause } from "../../../src/base/time.ts";
import { calmNetwork, FakeKv, onFile } from "../../support/fake_kv.ts";
import { RecordingService } from "../../support/harness.ts";
import { VirtualTime } from "../../support/time.ts";
import { onServer } from "./server.ts";

Deno.test.each(
  [
    ["a server", onServer, true, 12],
    ["a file", onFile, false, 1],
  ] as const,
)("RoundTrip.isFar and the number of lanes are correct if %s is slow", async (_, backend, isFar, lanes) => {
  await using service = await RecordingService.open({ backend });
  const { store } = service;
  assertEquals([store.reads.isFar, store.lanes], [false, Math.min(lanes, 3)]);

  service.disturbance = { read: () => pause(150) };
  for (let count = 0; count < 16; count++) await service.time.until(store.get(["row"]), 1_000);
  service.disturbance = {};

  assertEquals([store.reads.ms > 100, store.reads.isFar, store.lanes], [true, isFar, lanes]);
});

Deno.test.each([[1, 1], [100, 12]])(
  "Versions.check() on a server with reads of %i ms runs up to %i of them at a time",
  async (latency, most) => {
    using time = new VirtualTime();
    let [reading, mostReading] = [0, 0];
    const read = async () => {
      mostReading = Math.max(mostReading, ++reading);
      await pause(latency);
      reading--;
    };
    const kv = new FakeKv().connect({ ...calmNetwork(), read });
    const versions = new Versions(new Store(onServer(kv, { clock: () => 0 })));
    versions.watch(["row"]);
    for (let count = 0; count < 8; count++) await time.until(Promise.resolve(versions.check()), 500);
    mostReading = 0;

    for (let count = 0; count < 100; count++) {
      versions.check();
      await time.advance(latency / 20);
    }

    assertEquals(mostReading, most);
    await time.advance(500);
  },
);
