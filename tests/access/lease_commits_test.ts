import { assertEquals } from "@std/assert";
import { ACCOUNTS_VERSION } from "../../src/access/account.ts";
import { LeaseCommits } from "../../src/access/lease_commits.ts";
import { Quota } from "../../src/access/quota.ts";
import { AGAIN } from "../../src/kv/retried.ts";
import { Versions } from "../../src/kv/versions.ts";
import { Harness } from "../harness.ts";

Deno.test("LeaseCommits.commit() counts for every quota of an account that was forgotten while it was active", async () => {
  await using service = await Harness.open();
  const { account } = await service.createAccount({ minute: 10, day: 100 });
  const versions = new Versions(service.store);
  const accounts = versions.watch(ACCOUNTS_VERSION);
  await versions.look();
  const commits = new LeaseCommits({ store: service.store, accounts, clock: () => service.now });
  const quotas = [new Quota(account, accounts.version), new Quota(account, accounts.version)];
  const admitted: boolean[] = [];

  for (let round = 0; round < 8; round++) {
    const decisions = quotas.map(({ waiting }) => waiting.wait(accounts.version));
    const aside: Promise<void>[] = [];
    await commits.commit(quotas, (quota) => aside.push(commits.commit([quota], () => {})));
    await Promise.all(aside);
    for (const decision of await Promise.all(decisions)) {
      admitted.push(decision !== AGAIN && decision.refusal === undefined);
    }
  }

  assertEquals(admitted, [...Array(10).fill(true), ...Array(6).fill(false)]);
  assertEquals((await service.accounts.find(account.id))?.usage.used, 10);
});
