import { assertEquals } from "@std/assert";
import { ACCOUNTS } from "../../src/accounts/account.ts";
import { decodeState, stateKeys } from "../../src/limits/holder.ts";
import { Permits } from "../../src/limits/permits.ts";
import { AGAIN } from "../../src/engine/deadline.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { Harness } from "../support/harness.ts";

Deno.test("Permits admit exactly the limit in two processes that settle between requests", async () => {
  await using service = await Harness.open();
  const { store } = service;
  const { account } = await service.createAccount({ minute: 10, day: 100 });
  const rows = await store.getMany(stateKeys(ACCOUNTS, account.id));
  const clock = () => service.now;
  const processes = [1, 2].map(() => {
    return new Permits({ store, transactions: new Transactions(store, { clock }), holders: ACCOUNTS, clock });
  });
  const refused: boolean[] = [];

  for (let round = 0; round < 8; round++) {
    for (const permits of processes) {
      const state = decodeState(ACCOUNTS, account.id, rows);
      const asking = { credential: account.keyHash, now: service.now, arrived: performance.now() };
      const decision = state && await permits.learn(state, 0).request(asking);
      refused.push(decision === undefined || decision === AGAIN || decision.refusal !== undefined);
      await permits.settle();
    }
  }

  assertEquals(refused.filter((isRefused) => !isRefused).length, 10);
  assertEquals((await service.accounts.find(account.id))?.usage.used, 10);
});
