import { assertEquals, assertGreater } from "@std/assert";
import { UNUSED } from "../../src/limits/usage.ts";
import { pause } from "../../src/base/time.ts";
import { encodeJson, encodeText } from "../../src/engine/row.ts";
import { call, tally, upTo } from "../support/client.ts";
import { carryOut, type Commit, fail } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { NOON } from "../support/time.ts";

const numbers = Object.values(UNUSED);

for (
  const [what, table, value] of [
    ["corrupt usage", "usage", new Uint8Array([0xff, 0])],
    ["usage that is not a list", "usage", encodeJson(UNUSED)],
    ["negative usage", "usage", encodeJson([-1, ...numbers.slice(1)])],
    ["a corrupt account row", "accounts", encodeText("{")],
    ["a corrupt API key row", "api_keys", encodeText("acct_1")],
  ] as const
) {
  for (const isKnown of [false, true]) {
    // The account ID of a key is read once.
    if (isKnown && table === "api_keys") continue;
    Deno.test(`service fails only requests of an account with ${what}, ${isKnown ? "in use" : "at its first request"}`, async () => {
      await using service = await Harness.open();
      service.expectsErrors = true;
      const accounts = await Promise.all(upTo(5).map(() => service.createAccount("free")));
      const callAll = () => Promise.all(accounts.map(({ apiKey }) => call(service, apiKey)));
      if (isKnown) await callAll();
      const { id = "", keyHash = "" } = accounts[2]?.account ?? {};
      const key = [table, table === "api_keys" ? keyHash : id];
      const { value: before } = await service.kv.get(key);
      await service.kv.set(key, value);
      // Makes every process read accounts again.
      if (table === "accounts") await service.accounts.change(accounts[0]?.account.id ?? "", { name: "x" });

      assertEquals((await callAll()).map(({ status }) => status), [200, 200, 500, 200, 200]);
      assertEquals(service.errors.map(({ error }) => error), ["CorruptRow"]);

      // Transactions in the background would fail requests that join them.
      await service.app.settle();
      await service.kv.set(key, before);
      assertEquals(tally(await callAll()), { 200: 5 });
    });
  }
}

Deno.test("service does not charge an account whose commits fail, and serves all others", async () => {
  await using quiet = await Harness.open();
  let failing = "";
  const commit = (commit: Commit) =>
    commit.keys.some((key) => key.includes(failing)) ? fail() : carryOut(commit);
  await using service = quiet.beside({ disturbance: { commit } });
  const accounts = await Array.fromAsync(upTo(20), () => service.createAccount("free"));
  const callAll = () => Promise.all(accounts.map(({ apiKey }) => call(service, apiKey)));
  await callAll();
  service.expectsErrors = true;
  failing = accounts[7]?.account.id ?? "";

  const replies = await callAll();

  assertEquals(tally(replies), { 200: 19, "503 store_unavailable": 1 });
  for (const { status, limit, remaining, reset } of replies) {
    const expected = status === 200 ? [60, 58, NOON / 1_000 + 60] : [60, 60, NOON / 1_000 + 60];
    assertEquals([limit, remaining, reset], expected);
  }
  failing = "";
  assertEquals(
    (await callAll()).map(({ remaining }) => remaining),
    replies.map(({ status }) => status === 200 ? 57 : 58),
  );
});

Deno.test("service stops although its permits cannot be given back", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const { apiKey } = await service.createAccount();
  for (let count = 0; count < 30; count++) {
    await time.until(call(service, apiKey), 1_000);
    await time.advance(5);
  }
  const isOfUsage = ({ keys }: Commit) => keys.some(([table]) => table === "usage");
  const commit = async (commit: Commit) => {
    await pause(1);
    return isOfUsage(commit) ? await fail() : await commit.apply();
  };
  service.disturbance = { commit };
  service.forget();

  await time.until(service.app.settle(), 1_000);

  assertGreater(service.commits.filter(isOfUsage).length, 0);
});

Deno.test("service does not charge a request that still waits for a permit when its check of versions fails", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount("free");
  await call(service, apiKey);
  await time.advance(5_000);
  service.expectsErrors = true;
  service.disturbance = {
    read: fail,
    commit: async ({ apply }) => (await pause(100), await apply()),
  };

  const first = call(service, apiKey); // Its charge is being committed.
  await time.advance(10);
  const second = call(service, apiKey);
  const replies = await time.until(Promise.all([first, second]), 5_000);
  service.disturbance = {};
  await time.advance(5_000);

  assertEquals(tally(replies), { "503 store_unavailable": 2 });
  assertEquals((await service.accounts.usage(id)).used, 2);
});
