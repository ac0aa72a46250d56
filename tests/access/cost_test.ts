import { assert, assertEquals } from "@std/assert";
import { setImmediate } from "node:timers/promises";
import { accountKey, ACCOUNTS_VERSION, apiKeyKey } from "../../src/accounts/account.ts";
import { createApiKey, hashApiKey } from "../../src/accounts/api_key.ts";
import { usageKey } from "../../src/accounts/usage.ts";
import { pause } from "../../src/kv/retried.ts";
import { type Commit, slowly } from "../kv/disturbed_kv.ts";
import { FakeKv } from "../kv/fake_kv.ts";
import { VirtualTime } from "../virtual_time.ts";
import { NotedService } from "./noted_service.ts";
import { call, callAtOnce, tally, upTo } from "./replies.ts";

/** A request that is charged but for which no handler reads or writes anything. */
const NOWHERE = "GET /v1/nowhere";
/** The rows that everybody waits for. */
const LOOK = [ACCOUNTS_VERSION, ["catalogue"]];

Deno.test("Gate costs one look and one commit a request at walking pace", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time);
  const { apiKey } = await service.createAccount("free");
  await call(service, apiKey, NOWHERE);

  for (let remaining = 58; remaining > 50; remaining--) {
    await time.advance(1_000);
    service.forget();

    assertEquals((await call(service, apiKey, NOWHERE)).remaining, remaining);
    assertEquals([service.reads, service.commits.length], [[LOOK], 1]);
  }
});

Deno.test("Gate lets the commit that a charge takes travel beside the look", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time);
  const { apiKey } = await service.createAccount("free");
  await call(service, apiKey, NOWHERE);
  await time.advance(1_000);
  service.disturbance = { read: () => pause(20), commit: slowly };
  const before = time.now;

  await time.until(call(service, apiKey, NOWHERE), 1_000);

  assertEquals(time.now - before, 20);
});

Deno.test("Gate reads nothing of an account for requests with a key of it that has ended", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time);
  const { account: { id }, apiKey } = await service.createAccount();
  const newKey = await service.desk.rotate(id, 1);
  for (const key of [apiKey, newKey]) await call(service, key, NOWHERE);
  await time.advance(1_000);
  service.now += 2_000;
  service.forget();

  const reply = await call(service, apiKey, NOWHERE);

  assertEquals([reply.limit, service.reads, service.commits.length], [60, [LOOK], 0]);
});

for (const requests of [1, 500]) {
  Deno.test(`Gate reads who calls once when ${requests} first requests of an account come at once`, async () => {
    using time = new VirtualTime();
    await using service = new NotedService(time);
    const { account: { id }, apiKey } = await service.createAccount();
    service.forget();

    const replies = await callAtOnce(requests, [service], apiKey, NOWHERE);

    assertEquals(tally(replies), { "404 not_found": requests });
    const rows = [apiKeyKey(hashApiKey(apiKey)), accountKey(id), usageKey(id)];
    assertEquals([service.reads.length, service.commits.length], [3, 1]);
    assertEquals(service.reads.flat(), [...LOOK, ...rows]);
  });

  Deno.test(`Gate costs one look and one commit when ${requests} requests of a known account come at once`, async () => {
    using time = new VirtualTime();
    await using service = new NotedService(time);
    const { apiKey } = await service.createAccount();
    await call(service, apiKey, NOWHERE);
    await time.advance(1_000);
    service.forget();

    const replies = await callAtOnce(requests, [service], apiKey, NOWHERE);

    assertEquals(tally(replies), { "404 not_found": requests });
    assertEquals([service.reads, service.commits.length], [[LOOK], 1]);
  });
}

Deno.test("Gate costs few commits when an account calls fast", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time);
  const { account: { id }, apiKey } = await service.createAccount();

  for (let remaining = 999; remaining >= 500; remaining--) {
    assertEquals((await call(service, apiKey, NOWHERE)).remaining, remaining);
    await time.advance(1);
  }

  assert(service.commits.length < 50, `${service.commits.length}`);
  await time.advance(1_000);
  const usage = await service.desk.usage(id);
  assertEquals([usage.used, usage.leased], [500, 0]);
});

Deno.test("Gate gives its leases back in one commit, and takes no other, when it settles in the middle of many calls", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time);
  const { account: { id }, apiKey } = await service.createAccount();
  for (let count = 0; count < 100; count++) {
    await call(service, apiKey, NOWHERE);
    await time.advance(1);
  }
  service.forget();

  await time.until(service.app.settle(), 0);

  assertEquals(service.commits.length, 1);
  const usage = await service.desk.usage(id);
  assertEquals([usage.used, usage.leased], [100, 0]);
});

Deno.test("Gate keeps no lease that a commit brings while it settles", async () => {
  using time = new VirtualTime();
  const service = new NotedService(time);
  const { apiKey } = await service.createAccount({ minute: 1_000, day: 9_000 });
  const isRenewed = async () => {
    const before = service.commits.length;
    call(service, apiKey, NOWHERE);
    await time.advance(1);
    return service.commits.length > before;
  };
  for (let count = 0; count < 100; count++) await isRenewed();
  service.disturbance = { commit: slowly };
  while (!await isRenewed());

  const stopped = time.now;
  await time.until(service.app.settle(), 1_000);

  assertEquals(time.now - stopped, 19 + 20);
});

Deno.test("Gate costs a look and no commit when it refuses for a full window", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time);
  const { apiKey } = await service.createAccount("free");
  await callAtOnce(60, [service], apiKey);
  service.forget();

  for (let count = 0; count < 10; count++) {
    assertEquals((await call(service, apiKey)).code, "rate_limit_minute");
  }

  assertEquals([service.reads, service.commits.length], [Array(10).fill(LOOK), 0]);
});

Deno.test("Gate neither reads nor writes for banned and closed accounts, while others beside them call", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time);
  const [active, banned, closed] = await Promise.all(upTo(3).map(() => service.createAccount("free")));
  assert(active && banned && closed);
  await callAtOnce(121, [service], banned.apiKey);
  await service.desk.do("close", closed.account.id);
  const callAll = () => Promise.all([active, banned, closed].map(({ apiKey }) => call(service, apiKey)));
  await callAll();

  for (let count = 0; count < 3; count++) {
    await time.advance(1_000);
    service.forget();
    const codes = (await callAll()).map(({ code }) => code);

    assertEquals(codes, ["", "key_banned", "invalid_api_key"]);
    assertEquals(service.reads.filter((keys) => keys.length > LOOK.length), []);
    assertEquals(service.commits.map(({ checks }) => checks), [3]);
  }
});

Deno.test("Gate reads nothing for a mistyped key, one of the other environment, or none", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time);
  const { apiKey } = await service.createAccount();
  const typo = apiKey.slice(0, -1) + (apiKey.endsWith("0") ? "1" : "0");
  service.forget();

  assertEquals((await call(service)).status, 401);
  for (const key of [typo, apiKey.slice(1), "x", createApiKey("production")]) {
    assertEquals((await call(service, key)).status, 401);
  }

  assertEquals([service.reads, service.commits], [[], []]);
});

Deno.test("Gate remembers no header that is longer than a key needs", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time);
  const { apiKey } = await service.createAccount();
  service.forget();

  for (let count = 0; count < 3; count++) {
    const headers = { authorization: `Bearer${" ".repeat(50)}${apiKey}` };
    assertEquals((await service.fetch(NOWHERE, { headers })).status, 404);
  }

  const lookUps = service.reads.flat().filter(([table]) => table === "api_keys");
  assertEquals(lookUps, Array(3).fill(apiKeyKey(hashApiKey(apiKey))));
});

for (
  const [maxChecks, commits] of [
    // A mark, and two rows of each of four accounts: with more, a commit to a server would stall.
    [10, Array(8).fill(9).concat(7)],
    [100, [71]],
  ] as const
) {
  Deno.test(`Gate joins accounts in a commit where KV takes ${maxChecks} checks`, async () => {
    using time = new VirtualTime();
    await using service = new NotedService(time, new FakeKv(), { maxChecks });
    const issued = await Promise.all(upTo(35).map(() => service.createAccount("free")));
    service.forget();

    const replies = await Promise.all(issued.map(({ apiKey }) => call(service, apiKey, NOWHERE)));

    assertEquals(tally(replies), { "404 not_found": 35 });
    assertEquals(service.commits.map(({ checks }) => checks), commits);
  });
}

Deno.test("Gate joins requests in a commit that come one after the other within a few turns of the event loop", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time);
  const { apiKey } = await service.createAccount("free");
  await call(service, apiKey, NOWHERE);
  await time.advance(60_000);
  service.now += 60_000;
  service.forget();

  const replies: ReturnType<typeof call>[] = [];
  for (let request = 0; request < 4; request++) {
    replies.push(call(service, apiKey, NOWHERE));
    await setImmediate();
  }

  assertEquals(tally(await Promise.all(replies)), { "404 not_found": 4 });
  assertEquals(service.commits.length, 1);
});

Deno.test("Gate sends twelve commits at a time to a KV that is far away, for two accounts each", async () => {
  using time = new VirtualTime();
  await using service = new NotedService(time, new FakeKv(), { maxChecks: 10 });
  const keys = (await Promise.all(upTo(34).map(() => service.createAccount("free")))).map(({ apiKey }) =>
    apiKey
  );
  const underWay = new Set<Commit>();
  const atOnce: number[] = [];
  service.disturbance = {
    commit: (commit) => {
      atOnce.push(underWay.add(commit).size);
      return slowly(commit).finally(() => underWay.delete(commit));
    },
  };
  for (const key of keys.splice(0, 4)) await time.until(call(service, key, NOWHERE), 1_000);
  service.forget();

  const replies = await time.until(Promise.all(keys.map((key) => call(service, key, NOWHERE))), 1_000);

  assertEquals(tally(replies), { "404 not_found": 30 });
  assertEquals(
    service.commits.filter(({ checks }) => checks > 1).map(({ checks }) => checks),
    Array(15).fill(5),
  );
  assertEquals(Math.max(...atOnce), 12);
});

Deno.test("Gate takes only those accounts out of a commit whose rows another process has written", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  await using service = new NotedService(time, kv);
  await using other = new NotedService(time, kv);
  const keys = (await Promise.all(upTo(4).map(() => service.createAccount("free")))).map(({ apiKey }) =>
    apiKey
  );
  const callAll = () => time.until(Promise.all(keys.map((key) => call(service, key, NOWHERE))), 1_000);
  await callAll();
  await call(other, keys[0], NOWHERE);
  await time.advance(1_000);
  service.forget();

  const replies = await callAll();

  assertEquals(replies.map(({ remaining }) => remaining), [57, 58, 58, 58]);
  const checks = service.commits.map(({ checks }) => checks);
  // One opens a slot.
  assertEquals(checks.filter((count) => count > 1), [9, 3, 7]);
});
