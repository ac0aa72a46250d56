import { assertEquals, assertRejects } from "@std/assert";
import { Harness } from "./harness.ts";

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
