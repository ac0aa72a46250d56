import { assert, assertEquals } from "@std/assert";
import { call } from "../../support/client.ts";
import { fail, hang, slowly } from "../../support/fake_kv.ts";
import { RecordingService } from "../../support/harness.ts";
import { onServer } from "./server.ts";

Deno.test("service does not retry giving permits back to a server if the commit may have applied", async () => {
  await using service = await RecordingService.open({ backend: onServer });
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount("business");
  for (let count = 0; count < 30; count++) {
    await time.until(call(service, apiKey), 1_000);
    await time.advance(5);
  }
  service.disturbance = { commit: hang };
  await time.advance(8_000);
  service.disturbance = {};
  await time.advance(8_000);

  const { used, leased } = await service.accounts.usage(id);
  assertEquals([used, leased === 0], [30, false]);
});

Deno.test("service retries every two seconds to give leased permits back while KV fails", async () => {
  await using service = await RecordingService.open({ backend: onServer });
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount();
  service.disturbance = { commit: slowly };
  let calls = 0;
  for (; calls < 300; calls++) {
    await time.until(call(service, apiKey), 1_000);
    await time.advance(1);
  }
  service.disturbance = { commit: fail };
  service.forget();
  // The renewal of the lease fails before its last permits are handed out.
  for (; service.commits.length === 0 && calls < 1_000; calls++) {
    await call(service, apiKey);
    await time.advance(1);
  }
  service.disturbance = { read: fail, commit: fail };
  service.forget();

  await time.advance(10_000);
  const attempts = service.reads.length + service.commits.length;
  service.disturbance = {};
  await time.advance(3_000);

  assert(attempts >= 4 && attempts <= 12, `${attempts} times`);
  assertEquals((await service.accounts.usage(id)).used, calls);
});
