import { assert, assertEquals } from "@std/assert";
import { PLAN_LIMITS } from "../../src/access/plans.ts";
import { Harness, NOON } from "../harness.ts";
import { call } from "./replies.ts";

const HOUR = 3_600_000;

Deno.test("KeyStore.rotate() lets the old secret work until the grace period ends, and not at its end", async () => {
  using service = await Harness.open();
  const { key: { id }, secret: old } = await service.issueKey("free");
  const rotated = await service.keys.rotate(id, "staging", HOUR, NOON);

  service.now = NOON + HOUR - 1;
  assertEquals((await call(service, old)).status, 200);
  service.now = NOON + HOUR;
  assertEquals((await call(service, old)).code, "invalid_api_key");
  assertEquals((await call(service, rotated?.secret)).status, 200);
});

Deno.test("KeyStore.rotate() prolongs no secret that is on its way out", async () => {
  using service = await Harness.open();
  const { key: { id }, secret: first } = await service.issueKey("free");
  const second = await service.keys.rotate(id, "staging", HOUR, NOON);
  const third = await service.keys.rotate(id, "staging", 9 * HOUR, NOON);

  service.now = NOON + HOUR;
  const replies = [first, second?.secret, third?.secret].map(async (secret) =>
    (await call(service, secret)).status
  );

  assertEquals(await Promise.all(replies), [401, 200, 200]);
});

Deno.test("KeyStore.rotate() ends what is on its way out when there is no grace period", async () => {
  using service = await Harness.open();
  const { key: { id }, secret: first } = await service.issueKey("free");
  const second = await service.keys.rotate(id, "staging", HOUR, NOON);
  const third = await service.keys.rotate(id, "staging", 0, NOON);

  const replies = [first, second?.secret, third?.secret].map(async (secret) =>
    (await call(service, secret)).status
  );

  assertEquals(await Promise.all(replies), [401, 401, 200]);
});

Deno.test("KeyStore.revoke() cannot be undone by any other change, and keeps its first date", async () => {
  using service = await Harness.open();
  const { key: { id }, secret } = await service.issueKey("free");
  await service.keys.revoke(id, NOON);

  const rotated = await service.keys.rotate(id, "staging", HOUR, NOON);
  await service.keys.setPlan(id, "pro", PLAN_LIMITS.pro);
  await service.keys.unban(id);
  const key = await service.keys.revoke(id, NOON + HOUR);

  assertEquals(key?.revokedAt, NOON);
  for (const ended of [secret, rotated?.secret]) {
    assertEquals((await call(service, ended)).code, "invalid_api_key");
  }
});

Deno.test("KeyStore changes nothing and says so when there is no such key", async () => {
  using service = await Harness.open();
  const { keys } = service;

  assertEquals(await keys.find("key_none"), undefined);
  assertEquals(await keys.revoke("key_none", NOON), undefined);
  assertEquals(await keys.rotate("key_none", "staging", 0, NOON), undefined);
  assertEquals(await keys.setPlan("key_none", "pro", PLAN_LIMITS.pro), undefined);
  assertEquals(await keys.unban("key_none"), undefined);

  assertEquals(await Array.fromAsync(keys.list()), []);
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
  const rotated = await service.keys.rotate(id, "staging", HOUR, NOON);
  await call(service, secret);

  const rows = await Array.fromAsync(service.kv.list({ prefix: [] }));

  const text = JSON.stringify(rows.map(({ key, value }) => [key, value]));
  assert(text.includes(id));
  for (const issued of [secret, rotated?.secret ?? ""]) assert(!text.includes(issued.slice(8, 40)));
});
