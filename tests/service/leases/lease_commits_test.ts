import { assert, assertEquals, assertNotEquals } from "@std/assert";
import { AGAIN } from "../../../src/kv/retried.ts";
import { LeaseCommits } from "../../../src/leases/lease_commits.ts";
import { Quota } from "../../../src/leases/quota.ts";
import { call } from "../../support/client.ts";
import { carryOut, FakeKv } from "../../support/fake_kv.ts";
import { Harness, NotedService } from "../../support/harness.ts";
import { VirtualTime } from "../../support/time.ts";

Deno.test("LeaseCommits.commit() counts for every quota of an account that was forgotten while it was active", async () => {
  await using service = await Harness.open();
  const { account } = await service.createAccount({ minute: 10, day: 100 });
  const state = await service.accounts.find(account.id);
  assert(state);
  const commits = new LeaseCommits({ store: service.store, clock: () => service.now });
  const quotas = [new Quota(state), new Quota(state)];
  const admitted: boolean[] = [];

  for (let round = 0; round < 8; round++) {
    const decisions = quotas.map(({ waiting }) => waiting.wait(state.accountVersionstamp));
    const aside = await commits.commit(quotas);
    assertEquals(aside.length, 1);
    await Promise.all(quotas.map((quota) => commits.commit([quota])));
    for (const decision of await Promise.all(decisions)) {
      admitted.push(decision !== AGAIN && decision.refusal === undefined);
    }
  }

  assertEquals(admitted, [...Array(10).fill(true), ...Array(6).fill(false)]);
  assertEquals((await service.accounts.find(account.id))?.usage.used, 10);
});

Deno.test("LeaseCommits.commit() is done at once where every quota is in a conflict and goes on alone", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time, new FakeKv());
  const issued = [await service.createAccount("free"), await service.createAccount("free")];
  const commits = new LeaseCommits({ store: service.store, clock: () => service.now });
  const states = await Promise.all(issued.map(({ account }) => service.accounts.find(account.id)));
  const quotas = states.filter((state) => state !== null).map((state) => new Quota(state));
  await commits.commit(quotas);
  for (const { account } of issued) {
    await service.accounts.changeUsage(account.id, (usage) => ({ ...usage, used: 1, usedToday: 1 }));
  }
  const decisions = quotas.map((quota) => quota.waiting.wait(quota.accountVersionstamp));

  const aside = await time.until(commits.commit(quotas), 100);

  assertEquals(aside, quotas);
  assertEquals(time.now, 0);
  for (const quota of quotas) quota.forget();
  assertEquals(await Promise.all(decisions), [AGAIN, AGAIN]);
});

Deno.test("LeaseCommits.commit() overwrites nothing that its quota is shown between a proposal and its commit", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  await using service = new NotedService(time, kv);
  await using other = new NotedService(time, kv);
  const { account: { id }, apiKey } = await other.createAccount("free");
  const state = await service.accounts.find(id);
  assert(state);
  const quota = new Quota(state);
  const commits = new LeaseCommits({ store: service.store, clock: () => service.now });
  let opened = 0;
  service.disturbance = {
    async commit(commit) {
      // Its first commit opens a slot, and the one that takes places waits for that.
      if (opened++ === 0) {
        await call(other, apiKey);
        const next = await other.accounts.find(id);
        if (next) quota.see(next);
      }
      return await carryOut(commit);
    },
  };
  const decision = quota.waiting.wait(quota.accountVersionstamp);

  await time.until(commits.commit([quota]), 1_000);

  assertNotEquals(await decision, AGAIN);
  assertEquals((await service.accounts.find(id))?.usage.used, 2);
});
