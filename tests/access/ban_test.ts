import { assertEquals, assertGreater } from "@std/assert";
import { Harness, NOON } from "../harness.ts";
import { call, callAtOnce, tally } from "./replies.ts";

const MINUTE = 60_000;
const MIDNIGHT = NOON + 12 * 60 * MINUTE;

/** A service, and a key of the Free plan that was just banned. */
async function withBannedKey(): Promise<{ service: Harness; id: string; secret: string }> {
  const service = await Harness.open();
  const { key: { id }, secret } = await service.issueKey("free");
  await callAtOnce(121, [service], secret);
  return { service, id, secret };
}

Deno.test("Limiter bans a key that is refused more often in a minute than its minute limit", async () => {
  using service = await Harness.open();
  const { secret } = await service.issueKey("free");

  const replies = await callAtOnce(120, [service], secret);
  const last = await call(service, secret);

  assertEquals(tally(replies), { 200: 60, "429 rate_limit_minute": 60 });
  assertEquals([last.status, last.code, last.retryAfter], [429, "key_banned", 300]);
  assertEquals([last.limit, last.remaining, last.reset], [60, 0, NOON / 1_000 + 300]);
});

Deno.test("Limiter bans exactly from the refusal on that is too many when all come at once", async () => {
  using service = await Harness.open();
  const { secret } = await service.issueKey("free");

  const replies = await callAtOnce(200, [service], secret);

  assertEquals(tally(replies), { 200: 60, "429 rate_limit_minute": 60, "429 key_banned": 80 });
});

Deno.test("Limiter counts strikes of two instances together", async () => {
  using kv = await Deno.openKv(":memory:");
  const services = [new Harness(kv), new Harness(kv)];
  const { secret } = await new Harness(kv).issueKey("free");

  const replies = await callAtOnce(200, services, secret);

  assertEquals(tally(replies), { 200: 60, "429 rate_limit_minute": 60, "429 key_banned": 80 });
});

Deno.test("Limiter upholds a ban when the service starts again", async () => {
  const { service, secret } = await withBannedKey();
  using _ = service;

  const restarted = new Harness(service.kv);
  restarted.now = NOON + 2 * MINUTE;
  const reply = await call(restarted, secret);

  assertEquals([reply.status, reply.code, reply.retryAfter], [429, "key_banned", 180]);
  assertGreater(reply.retryAfter ?? 0, 60);
});

Deno.test("Limiter leaves other keys alone when one is banned", async () => {
  const { service } = await withBannedKey();
  using _ = service;
  const { secret } = await service.issueKey("free");

  const reply = await call(service, secret);

  assertEquals([reply.status, reply.remaining], [200, 59]);
});

Deno.test("Limiter does not prolong a ban when requests go on", async () => {
  const { service, id, secret } = await withBannedKey();
  using _ = service;
  const usage = (await service.keys.find(id))?.usage;

  for (let minute = 0; minute < 5; minute++) {
    service.now = NOON + minute * MINUTE;
    const replies = await callAtOnce(130, [service], secret);
    assertEquals(tally(replies), { "429 key_banned": 130 });
    assertEquals(replies[0]?.retryAfter, 300 - minute * 60);
  }
  assertEquals((await service.keys.find(id))?.usage, usage);

  service.now = NOON + 5 * MINUTE;
  const reply = await call(service, secret);
  assertEquals([reply.status, reply.remaining], [200, 59]);
});

Deno.test("Limiter bans for twice as long when it has to ban again", async () => {
  const { service, secret } = await withBannedKey();
  using _ = service;

  service.now = NOON + 5 * MINUTE;
  await callAtOnce(120, [service], secret);
  const reply = await call(service, secret);

  assertEquals([reply.code, reply.retryAfter], ["key_banned", 600]);
});

Deno.test("Limiter bans no key whose refusals are spread over minutes", async () => {
  using service = await Harness.open();
  const { secret } = await service.issueKey("free");

  for (let minute = 0; minute < 4; minute++) {
    service.now = NOON + minute * MINUTE;
    assertEquals(tally(await callAtOnce(120, [service], secret)), { 200: 60, "429 rate_limit_minute": 60 });
  }
});

Deno.test("Limiter describes the new day when a ban goes on beyond midnight", async () => {
  using service = await Harness.open();
  service.now = MIDNIGHT - MINUTE;
  const { secret } = await service.issueKey("free");
  await callAtOnce(121, [service], secret);

  service.now = MIDNIGHT + MINUTE;
  const response = await service.fetch("GET /v1/pets", { key: secret });

  assertEquals(response.status, 429);
  assertEquals(response.headers.get("retry-after"), "180");
  assertEquals(response.headers.get("ratelimit"), '"minute";r=0;t=180, "day";r=1000;t=86340');
});
