import { assert, assertEquals } from "@std/assert";
import { ACCOUNTS, ACCOUNTS_VERSION } from "../../src/accounts/account.ts";
import { ApiKeys } from "../../src/accounts/api_keys.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { Permits } from "../../src/limits/permits.ts";
import { pause } from "../../src/base/time.ts";
import { call, tally } from "../support/client.ts";
import { RecordingService } from "../support/harness.ts";
import { NOON } from "../support/time.ts";
import { KEYS } from "../support/things.ts";

/** Keys of a service, without the service, and what finds their accounts. */
async function withKeys() {
  const service = await RecordingService.open();
  const { store } = service;
  const { apiKey } = await service.createAccount();
  const clock = () => service.now;
  const transactions = new Transactions(store, { clock });
  const permits = new Permits({ store, transactions, holders: ACCOUNTS, clock });
  const accounts = { key: ACCOUNTS_VERSION, version: "" };
  const keys = new ApiKeys({ store, accounts, environment: "staging", keys: KEYS, permits });
  return { service, accounts, keys, apiKey };
}

Deno.test("ApiKeys.find() reads an account again if a change was noticed during the read", async () => {
  const { service, accounts, keys, apiKey } = await withKeys();
  await using _ = service;
  service.disturbance = {
    read(keys) {
      if (keys.some(([table]) => table === "accounts")) accounts.version = "~";
    },
  };

  const isKnown = await keys.identify(apiKey);
  const found = await keys.find(apiKey, NOON);
  const again = keys.find(apiKey, NOON);

  assert(isKnown && found);
  assert(again instanceof Promise);
  assertEquals(await again, found);
});

Deno.test("service accepts a new key at once, regardless of MAX_STALENESS_MS", async () => {
  await using service = await RecordingService.open({ maxStalenessMs: 60_000 });
  await using other = service.beside();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount();
  await call(service, apiKey);
  const issued = await other.accounts.rotate(id, 0, NOON);
  service.disturbance = { read: () => pause(10) };

  const first = call(service, issued?.apiKey);
  // The key is known, but its account has not been read yet.
  await time.advance(15);
  const second = call(service, issued?.apiKey);

  assertEquals(tally(await time.until(Promise.all([first, second]), 1_000)), { 200: 2 });
});
