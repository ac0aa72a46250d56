import { assert, assertEquals, assertStrictEquals } from "@std/assert";
import { ACCOUNT_ROWS, ACCOUNTS_VERSION } from "../../src/accounts/account.ts";
import { Allowance } from "../../src/limits/allowance.ts";
import { decodeState, stateKeys } from "../../src/limits/holder.ts";
import { ApiKeys } from "../../src/accounts/api_keys.ts";
import { pause } from "../../src/base/time.ts";
import { call, tally } from "../support/client.ts";
import { RecordingService } from "../support/harness.ts";
import { NOON } from "../support/time.ts";

Deno.test("ApiKeys.find() reads an account again if a change was noticed during the read", async () => {
  await using service = await RecordingService.open();
  const { apiKey } = await service.createAccount();
  const accounts = { key: ACCOUNTS_VERSION, version: "" };
  const keys = new ApiKeys({ store: service.store, accounts, environment: "staging" }, () => undefined);
  const authorization = `Bearer ${apiKey}`;
  service.disturbance = {
    read(keys) {
      if (keys.some(([table]) => table === "accounts")) accounts.version = "~";
    },
  };

  const found = await keys.find(authorization, NOON);
  const again = keys.find(authorization, NOON);

  assert(found);
  assert(again instanceof Promise);
  assertEquals(await again, found);
});

Deno.test("ApiKeys.find() keeps the active allowance of an evicted account", async () => {
  await using service = await RecordingService.open();
  const { account, apiKey } = await service.createAccount();
  const { store } = service;
  const [holderRow, usageRow] = await store.getMany(stateKeys(ACCOUNT_ROWS, account.id));
  const state = decodeState(ACCOUNT_ROWS, holderRow, usageRow);
  assert(state);
  const active = new Allowance(ACCOUNT_ROWS, state);
  const accounts = { key: ACCOUNTS_VERSION, version: "" };
  const activeOf = (id: string) => id === account.id ? active : undefined;
  const keys = new ApiKeys({ store, accounts, environment: "staging" }, activeOf);

  assertStrictEquals(await keys.find(`Bearer ${apiKey}`, NOON), active);
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
