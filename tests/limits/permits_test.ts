import { Metrics } from "../../src/base/metrics.ts";
import { assert, assertEquals } from "@std/assert";
import { Allowance } from "../../src/limits/allowance.ts";
import { Permits } from "../../src/limits/permits.ts";
import { AGAIN } from "../../src/engine/deadline.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { Harness } from "../support/harness.ts";

Deno.test("Permits.request() admits exactly the limit across two allowances of an evicted account", async () => {
  await using service = await Harness.open();
  const { store } = service;
  const { account } = await service.createAccount({ minute: 10, day: 100 });
  const state = await service.accounts.find(account.id);
  assert(state);
  const clock = () => service.now;
  const permits = new Permits({
    store,
    transactions: new Transactions(store, { clock }),
    clock,
    metrics: new Metrics(),
  });
  const allowances = [new Allowance(state), new Allowance(state)];
  const refused: boolean[] = [];

  for (let round = 0; round < 8; round++) {
    const decisions = allowances.map((allowance) =>
      permits.request(allowance, { hash: account.keyHash, now: service.now })
    );
    for (const decision of await Promise.all(decisions)) {
      refused.push(decision === AGAIN || decision.refusal !== undefined);
    }
    await permits.settle();
  }

  assertEquals(refused.filter((isRefused) => !isRefused).length, 10);
  assertEquals((await service.accounts.find(account.id))?.usage.used, 10);
});
