import { Metrics } from "../../src/base/metrics.ts";
import { assert, assertEquals } from "@std/assert";
import { type Account, ACCOUNTS_VERSION } from "../../src/accounts/account.ts";
import { Gate } from "../../src/app/admission.ts";
import { Permits } from "../../src/limits/permits.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { Versions } from "../../src/engine/versions.ts";
import { RecordingService } from "../support/harness.ts";

Deno.test("Gate.usedBy() returns the current usage even if the given rows are older than the leases", async () => {
  await using service = await RecordingService.open();
  const { store } = service;
  const { account: { id }, apiKey } = await service.createAccount("free");
  const versions = new Versions(store);
  const accounts = versions.watch(ACCOUNTS_VERSION);
  const clock = () => service.now;
  const permits = new Permits<Account>({
    store,
    transactions: new Transactions(store, { clock }),
    clock,
    metrics: new Metrics(),
  });
  const gate = new Gate({ store, accounts, environment: "staging", permits });
  const request = async () => {
    await versions.check();
    await gate.admit({
      authorization: `Bearer ${apiKey}`,
      address: () => "",
      now: service.now,
      arrived: 0,
      isRead: true,
    });
  };

  await request();
  const before = await service.accounts.find(id);
  for (let count = 1; count < 5; count++) await request();

  assert(before);
  assertEquals(permits.count().leases, 1);
  assertEquals(gate.usedBy(before).used, 5);
  await service.time.until(permits.settle(), 1_000);
});
