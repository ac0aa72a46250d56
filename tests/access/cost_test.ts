import { assert, assertEquals } from "@std/assert";
import type { ApiKey } from "../../src/access/api_key.ts";
import { keyRow, secretRow, usageRow } from "../../src/access/key_rows.ts";
import { createSecret, hashSecret } from "../../src/access/secret.ts";
import { UNUSED } from "../../src/access/usage.ts";
import { Store } from "../../src/kv/store.ts";
import { Harness, NOON } from "../harness.ts";
import { carryOut, type Commit, disturbed } from "../kv/disturbed_kv.ts";
import { call, callAtOnce, tally, upTo } from "./replies.ts";

/** A request that is charged but for which no handler reads or writes anything. */
const NOWHERE = "GET /v1/nowhere";

/** A service that notes what it asks of its KV. */
class ThriftyService extends Harness {
  readonly reads: Deno.KvKey[] = [];
  readonly commits: Commit[] = [];

  private constructor(kv: Deno.Kv, maxChecks: number) {
    const noted = disturbed(kv, {
      read: (keys) => void this.reads.push(...keys),
      commit: (commit) => (this.commits.push(commit), carryOut(commit)),
    });
    super(kv, new Store(noted, { maxChecks }));
  }

  static async start({ maxChecks = 100 } = {}): Promise<ThriftyService> {
    return new ThriftyService(await Deno.openKv(":memory:"), maxChecks);
  }

  /** Starts to count anew. */
  reset(): void {
    this.reads.length = 0;
    this.commits.length = 0;
  }

  /** Sends a request with each of the keys at once; gives the statuses. */
  async callAll(keys: readonly string[]): Promise<number[]> {
    return await Promise.all(keys.map(async (key) => (await call(this, key, NOWHERE)).status));
  }
}

Deno.test("Authenticator keeps no header that is longer than a key needs", async () => {
  using service = await ThriftyService.start();
  const { secret } = await service.issueKey("business");
  const padded = { authorization: `Bearer${" ".repeat(50)}${secret}` };

  for (let count = 0; count < 3; count++) {
    assertEquals((await service.fetch(NOWHERE, { headers: padded })).status, 404);
  }

  const lookUps = service.reads.filter(([table]) => table === "api_keys");
  assertEquals(lookUps.length, 3);
});

for (const requests of [1, 10, 500]) {
  Deno.test(`Limiter costs one commit and no read when ${requests} requests of a known key come at once`, async () => {
    using service = await ThriftyService.start();
    const { secret } = await service.issueKey();
    await call(service, secret, NOWHERE);

    service.reset();
    const statuses = await service.callAll(Array(requests).fill(secret));

    assertEquals(new Set(statuses), new Set([404]));
    assertEquals(service.commits.length, 1);
    assertEquals(service.reads, []);
  });
}

Deno.test("listPets() costs one commit and no read once the catalogue is known to be steady", async () => {
  using service = await ThriftyService.start();
  const { secret } = await service.issueKey();
  for (let count = 0; count < 20; count++) await call(service, secret, "GET /v1/pets");

  service.reset();
  const replies = await Promise.all(upTo(50).map(() => call(service, secret, "GET /v1/pets")));

  assertEquals(tally(replies), { "200": 50 });
  assertEquals(service.commits.map(({ checks }) => checks), [2]);
  assertEquals(service.reads, []);
});

Deno.test("Limiter reads the rows of a key once when its first requests come one after the other", async () => {
  using service = await ThriftyService.start();
  const { key: { id }, secret } = await service.issueKey();

  service.reset();
  for (let count = 0; count < 5; count++) await call(service, secret, NOWHERE);

  assertEquals(service.reads, [secretRow(hashSecret(secret)), keyRow(id), usageRow(id)]);
  assertEquals(service.commits.length, 5);
});

Deno.test("Limiter halves a commit that one key's conflict refused", async () => {
  using service = await ThriftyService.start();
  const issued = await Promise.all(upTo(4).map(() => service.issueKey("free")));
  const secrets = issued.map(({ secret }) => secret);
  await service.callAll(secrets);
  const [first] = issued;
  await service.keys.setPlan(first?.key.id ?? "", "pro", { minute: 300, day: 10_000 });

  service.reset();
  const statuses = await service.callAll(secrets);

  assertEquals(new Set(statuses), new Set([404]));
  assertEquals(service.commits.map(({ checks }) => checks), [4, 2, 2]);
});

Deno.test("Limiter puts as many keys into a commit as it takes checks, but one", async () => {
  using service = await ThriftyService.start({ maxChecks: 10 });
  const issued = await Promise.all(upTo(35).map(() => service.issueKey("free")));
  const secrets = issued.map(({ secret }) => secret);
  await service.callAll(secrets);

  service.reset();
  const statuses = await service.callAll([...secrets, ...secrets]);

  assertEquals(new Set(statuses), new Set([404]));
  assertEquals(service.commits.map(({ checks }) => checks).sort(), [8, 9, 9, 9]);
  assertEquals(service.reads, []);
  for (const { key: { id } } of issued) {
    assertEquals((await service.keys.find(id))?.usage.minuteUsed, 3);
  }
});

Deno.test("Limiter serves the keys of other commits when one commit of a round fails", async () => {
  using kv = await Deno.openKv(":memory:");
  let isFirst = false;
  const rough = disturbed(kv, {
    commit: async (commit) => {
      if (isFirst) {
        isFirst = false;
        throw new TypeError("disk I/O error");
      }
      await new Promise((resolve) => setTimeout(resolve));
      return await carryOut(commit);
    },
  });
  const service = new Harness(rough, new Store(rough, { maxChecks: 10 }));
  const keys = await Promise.all(upTo(30).map(() => service.issueKey("free")));
  const callEach = () => Promise.all(keys.map(({ secret }) => call(service, secret, NOWHERE)));
  await callEach();

  isFirst = true;
  const replies = await callEach();

  assertEquals(tally(replies), { "404 not_found": 21, "503 store_unavailable": 9 });
  const used = await Promise.all(
    keys.map(async ({ key }) => (await service.keys.find(key.id))?.usage.minuteUsed),
  );
  assertEquals(used, replies.map(({ status }) => status === 404 ? 2 : 1));
});

Deno.test("Limiter writes nothing for a banned or revoked key", async () => {
  using service = await ThriftyService.start();
  const [banned, revoked] = [await service.issueKey("free"), await service.issueKey("free")];
  await callAtOnce(121, [service], banned.secret);
  await service.keys.revoke(revoked.key.id, NOON);

  service.reset();
  const replies = [
    ...await callAtOnce(50, [service], banned.secret),
    ...await callAtOnce(50, [service], revoked.secret),
  ];

  assertEquals(tally(replies), { "429 key_banned": 50, "401 invalid_api_key": 50 });
  assertEquals(service.commits.length, 0);
});

Deno.test("Authenticator reads nothing for a mistyped key, one of the other environment, or none", async () => {
  using service = await ThriftyService.start();
  const { secret } = await service.issueKey();
  const typo = secret.slice(0, -1) + (secret.endsWith("0") ? "1" : "0");

  service.reset();
  const statuses = await Promise.all([
    ...[typo, secret.slice(1), "x", createSecret("production")].map((key) => call(service, key)),
    call(service),
  ]);

  assertEquals(statuses.map(({ status }) => status), [401, 401, 401, 401, 401]);
  assertEquals(service.reads, []);
  assertEquals(service.commits, []);
});

/** Stores new keys, many at once. */
async function storeKeys(kv: Deno.Kv, count: number): Promise<string[]> {
  const secrets = upTo(count).map(() => createSecret("staging"));
  for (let start = 0; start < count; start += 250) {
    const operation = kv.atomic();
    secrets.slice(start, start + 250).forEach((secret, index) => {
      const [id, hash] = [`key_${start + index}`, hashSecret(secret)];
      const key: ApiKey = {
        id,
        account: "tests",
        environment: "staging",
        plan: "free",
        limits: { minute: 60, day: 1_000 },
        createdAt: NOON,
        secrets: [{ hash }],
      };
      operation.set(keyRow(id), key).set(usageRow(id), UNUSED).set(secretRow(hash), id);
    });
    assert((await operation.commit()).ok);
  }
  return secrets;
}

Deno.test("Gate keeps no more than 10,000 keys in memory, and those used last", async () => {
  using service = await ThriftyService.start();
  const [first = "", ...others] = await storeKeys(service.kv, 10_001);
  const last = others.slice(-1_000);
  await service.callAll([first]);
  for (let start = 0; start < others.length; start += 1_000) {
    await service.callAll(others.slice(start, start + 1_000));
  }

  service.reset();
  assertEquals(new Set(await service.callAll(last)), new Set([404]));
  assertEquals(service.reads.length, 0);

  assertEquals((await call(service, first, NOWHERE)).remaining, 58);
  assertEquals(service.reads, [secretRow(hashSecret(first)), keyRow("key_0"), usageRow("key_0")]);
});
