import { assert, assertEquals } from "@std/assert";
import { PLAN_LIMITS } from "../../src/access/plans.ts";
import { Harness, NOON } from "../harness.ts";
import { carryOut, disturbed } from "../kv/disturbed_kv.ts";
import { call, callAtOnce } from "./replies.ts";

const HOUR = 3_600_000;

Deno.test("KeyStore.rotate() lets the old secret work until the grace period ends, and not at its end", async () => {
  using service = await Harness.open();
  const { key: { id }, secret: old } = await service.issueKey("free");
  const rotated = await service.keys.rotate(id, HOUR, NOON);

  service.now = NOON + HOUR - 1;
  assertEquals((await call(service, old)).status, 200);
  service.now = NOON + HOUR;
  assertEquals((await call(service, old)).code, "invalid_api_key");
  assertEquals((await call(service, rotated?.secret)).status, 200);
});

Deno.test("KeyStore.rotate() prolongs no secret that is on its way out", async () => {
  using service = await Harness.open();
  const { key: { id }, secret: first } = await service.issueKey("free");
  const second = await service.keys.rotate(id, HOUR, NOON);
  const third = await service.keys.rotate(id, 9 * HOUR, NOON);

  service.now = NOON + HOUR;
  const replies = [first, second?.secret, third?.secret].map(async (secret) =>
    (await call(service, secret)).status
  );

  assertEquals(await Promise.all(replies), [401, 200, 200]);
});

Deno.test("KeyStore.rotate() ends what is on its way out when there is no grace period", async () => {
  using service = await Harness.open();
  const { key: { id }, secret: first } = await service.issueKey("free");
  const second = await service.keys.rotate(id, HOUR, NOON);
  const third = await service.keys.rotate(id, 0, NOON);

  const replies = [first, second?.secret, third?.secret].map(async (secret) =>
    (await call(service, secret)).status
  );

  assertEquals(await Promise.all(replies), [401, 401, 200]);
});

Deno.test("KeyStore.rotate() forgets secrets that have ended", async () => {
  using service = await Harness.open();
  const { key: { id } } = await service.issueKey("free");
  await service.keys.rotate(id, HOUR, NOON);

  const before = await service.keys.rotate(id, HOUR, NOON + HOUR - 1);
  const after = await service.keys.rotate(id, HOUR, NOON + 3 * HOUR);

  assertEquals([before?.key.secrets.length, after?.key.secrets.length], [3, 2]);
});

Deno.test("KeyStore.revoke() cannot be undone or changed by anything", async () => {
  using service = await Harness.open();
  const { key: { id }, secret } = await service.issueKey("free");
  await service.keys.revoke(id, NOON);

  assertEquals(await service.keys.rotate(id, HOUR, NOON), undefined);
  assertEquals(await service.keys.setPlan(id, "pro", PLAN_LIMITS.pro), undefined);
  assertEquals(await service.keys.unban(id), undefined);
  assertEquals(await service.keys.revoke(id, NOON + HOUR), undefined);

  const key = await service.keys.find(id);
  assertEquals([key?.revokedAt, key?.plan, key?.secrets.length], [NOON, "free", 1]);
  assertEquals((await call(service, secret)).code, "invalid_api_key");
});

Deno.test("KeyStore changes nothing and says so when there is no such key", async () => {
  using service = await Harness.open();
  const { keys } = service;

  assertEquals(await keys.find("key_none"), undefined);
  assertEquals(await keys.revoke("key_none", NOON), undefined);
  assertEquals(await keys.rotate("key_none", 0, NOON), undefined);
  assertEquals(await keys.setPlan("key_none", "pro", PLAN_LIMITS.pro), undefined);
  assertEquals(await keys.unban("key_none"), undefined);

  assertEquals(await Array.fromAsync(keys.list()), []);
});

Deno.test("KeyStore loses neither its change nor an admission that comes between its read and its write", async () => {
  using service = await Harness.open();
  const { key: { id }, secret } = await service.issueKey("free");
  let calls = 0;
  const overtaken = disturbed(service.kv, {
    commit: async (commit) => {
      if (calls++ < 3) await call(service, secret);
      return await carryOut(commit);
    },
  });

  await new Harness(overtaken).keys.setPlan(id, "pro", PLAN_LIMITS.pro);

  assertEquals((await service.keys.find(id))?.usage.minuteUsed, 3);
  const { limit, remaining } = await call(service, secret);
  assertEquals([limit, remaining], [300, 296]);
});

Deno.test("KeyStore loses none of the changes that come at once", async () => {
  using service = await Harness.open();
  const { key: { id }, secret } = await service.issueKey("free");
  await callAtOnce(121, [service], secret);

  await Promise.all([
    service.keys.setPlan(id, "pro", PLAN_LIMITS.pro),
    new Harness(service.kv).keys.unban(id),
    new Harness(service.kv).keys.rotate(id, HOUR, NOON),
  ]);

  const key = await service.keys.find(id);
  assertEquals([key?.plan, key?.usage.bans, key?.secrets.length], ["pro", 0, 2]);
});

Deno.test("KeyStore.list() gives every key in the order of ids when there are hundreds", async () => {
  using service = await Harness.open();
  const issued = await Promise.all(Array.from({ length: 250 }, () => service.issueKey("free")));

  const listed = await Array.fromAsync(service.keys.list());

  assertEquals(listed.map(({ id }) => id), issued.map(({ key }) => key.id).sort());
});

Deno.test("KeyStore stores hashes of secrets and never a secret", async () => {
  using service = await Harness.open();
  const { key: { id }, secret } = await service.issueKey("free");
  const rotated = await service.keys.rotate(id, HOUR, NOON);
  await call(service, secret);

  const rows = await Array.fromAsync(service.kv.list({ prefix: [] }));

  const text = JSON.stringify(rows.map(({ key, value }) => [key, value]));
  assert(text.includes(id));
  for (const issued of [secret, rotated?.secret ?? ""]) assert(!text.includes(issued.slice(8, 40)));
});
