import { assert, assertEquals } from "@std/assert";
import { ACCOUNTS, ACCOUNTS_VERSION } from "../../src/accounts/account.ts";
import { Admissions } from "../../src/app/admission.ts";
import { Permits } from "../../src/limits/permits.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { Versions } from "../../src/engine/versions.ts";
import { Budget } from "../../src/web/in_flight.ts";
import { RecordingService } from "../support/harness.ts";

Deno.test("Admissions.usedBy() returns the current usage even if the given rows are older than the leases", async () => {
  await using service = await RecordingService.open();
  const { store } = service;
  const { account: { id }, apiKey } = await service.createAccount("free");
  const versions = new Versions(store);
  const accounts = versions.watch(ACCOUNTS_VERSION);
  const clock = () => service.now;
  const permits = new Permits({
    store,
    transactions: new Transactions(store, { clock }),
    holders: ACCOUNTS,
    clock,
  });
  const admissions = new Admissions({
    store,
    versions,
    accounts,
    environment: "staging",
    permits,
    metrics: service.metrics,
  });
  const request = async () => {
    const caller = {
      authorization: `Bearer ${apiKey}`,
      address: () => "",
      now: service.now,
      arrived: performance.now(),
      isRead: true,
    };
    const { ready, work } = admissions.admit(caller, () => new Response());
    await ready;
    assert(await work(new Budget(Infinity)));
  };

  await request();
  const before = await service.accounts.find(id);
  for (let count = 1; count < 5; count++) await request();

  assert(before);
  assertEquals(permits.count().leases, 1);
  assertEquals(admissions.usedBy(before).used, 5);
  await service.time.until(permits.settle(), 1_000);
});
