import { assert, assertEquals } from "@std/assert";
import { Gate } from "../../../src/access/gate.ts";
import { ACCOUNTS_VERSION } from "../../../src/accounts/account.ts";
import { Leases } from "../../../src/leases/leases.ts";
import { Versions } from "../../../src/store/versions.ts";
import { NotedService } from "../../support/harness.ts";
import { VirtualTime } from "../../support/time.ts";

Deno.test("Gate.usedBy() tells of what was used, though the rows it is given are older than the leases held", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time);
  const { store } = service;
  const { account: { id }, apiKey } = await service.createAccount("free");
  const versions = new Versions(store);
  const accounts = versions.watch(ACCOUNTS_VERSION);
  const leases = new Leases({ store, clock: () => service.now });
  const gate = new Gate({ store, versions, accounts, environment: "staging", leases });
  const request = async () => {
    const { ready, admit } = gate.enter(`Bearer ${apiKey}`, () => "", service.now, false);
    await ready;
    await admit();
  };

  await request();
  const before = await service.accounts.find(id);
  for (let count = 1; count < 5; count++) await request();

  assert(before);
  assertEquals(leases.count().count, 1);
  assertEquals(gate.usedBy(before).used, 5);
  await time.until(leases.settle(), 1_000);
});
