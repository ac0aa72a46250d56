import { Metrics } from "../../src/base/metrics.ts";
import { assert, assertEquals } from "@std/assert";
import { type Account, ACCOUNT_ROWS } from "../../src/accounts/account.ts";
import { Allowance } from "../../src/limits/allowance.ts";
import { decodeState, stateKeys } from "../../src/limits/holder.ts";
import { Permits } from "../../src/limits/permits.ts";
import { AGAIN } from "../../src/engine/deadline.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { Harness } from "../support/harness.ts";

Deno.test("Permits.request() admits exactly the limit across two allowances of an evicted account", async () => {
  await using service = await Harness.open();
  const { store } = service;
  const { account } = await service.createAccount({ minute: 10, day: 100 });
  const [holderRow, usageRow] = await store.getMany(stateKeys(ACCOUNT_ROWS, account.id));
  const state = decodeState(ACCOUNT_ROWS, holderRow, usageRow);
  assert(state);
  const clock = () => service.now;
  const permits = new Permits<Account>({
    store,
    transactions: new Transactions(store, { clock }),
    clock,
    metrics: new Metrics(),
  });
  const allowances = [new Allowance(ACCOUNT_ROWS, state), new Allowance(ACCOUNT_ROWS, state)];
  const refused: boolean[] = [];

  for (let round = 0; round < 8; round++) {
    const decisions = allowances.map((allowance) =>
      permits.request(allowance, { hash: account.keyHash, now: service.now, arrived: 0 })
    );
    for (const decision of await Promise.all(decisions)) {
      refused.push(decision === AGAIN || decision.refusal !== undefined);
    }
    await permits.settle();
  }

  assertEquals(refused.filter((isRefused) => !isRefused).length, 10);
  assertEquals((await service.accounts.find(account.id))?.usage.used, 10);
});
