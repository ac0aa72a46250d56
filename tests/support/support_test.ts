import { assertEquals, assertRejects } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { Harness } from "./harness.ts";
import { VirtualTime } from "./time.ts";

Deno.test.each([false, true])(
  "stop() throws if the store has failed, unless errors are expected: %s",
  async (expectsErrors) => {
    using kv = await Deno.openKv(":memory:");
    const service = new Harness(kv);
    service.expectsErrors = expectsErrors;
    kv.getMany = () => Promise.reject(new TypeError("no such key"));

    const { status } = await service.fetch("GET /ready");

    assertEquals(status, 503);
    if (expectsErrors) return await service.stop();
    await assertRejects(
      () => service.stop(),
      Error,
      '"route":"/ready","error":"StoreUnavailable (TypeError)"',
    );
  },
);

Deno.test("VirtualTime throws if a timer is set at its end, also by work that was under way, and ends it", async () => {
  const original = setTimeout;
  for (const work of [() => pause(5_000), () => Promise.resolve().then(() => pause(5_000))]) {
    const time = new VirtualTime();
    work();

    await assertRejects(() => time[Symbol.asyncDispose](), Error, "Timers are set, and end in 5000 ms");

    assertEquals(setTimeout, original);
  }
});
