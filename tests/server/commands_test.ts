import { assertEquals, assertNotEquals } from "@std/assert";
import { type Answer, errorCode } from "./client.ts";
import { Cluster } from "./cluster.ts";

Deno.test("servers refuse a key at the next request when keys revoke ends it", async () => {
  await using cluster = await Cluster.start();
  const { id, authorization } = await cluster.store.issueKey();
  assertEquals(statuses(await listFromBoth(cluster, authorization)), [200, 200]);

  const { code } = await cluster.store.run("keys", "revoke", id);
  const answers = await listFromBoth(cluster, authorization);

  assertEquals(code, 0);
  assertEquals(statuses(answers), [401, 401]);
  assertEquals(codes(answers), ["invalid_api_key", "invalid_api_key"]);
});

Deno.test("servers tell secrets apart at the next request when keys rotate gives a new one", async () => {
  await using cluster = await Cluster.start();
  const { id, authorization } = await cluster.store.issueKey();
  assertEquals(statuses(await listFromBoth(cluster, authorization)), [200, 200]);

  const { code, stdout } = await cluster.store.run("keys", "rotate", id);
  const withOld = await listFromBoth(cluster, authorization);
  const withNew = await listFromBoth(cluster, `Bearer ${stdout.trim()}`);

  assertEquals(code, 0);
  assertEquals(statuses(withOld), [401, 401]);
  assertEquals(statuses(withNew), [200, 200]);
});

Deno.test("servers keep taking the old secret when keys rotate leaves it a grace period", async () => {
  await using cluster = await Cluster.start();
  const { id, authorization } = await cluster.store.issueKey();

  const { stdout } = await cluster.store.run("keys", "rotate", id, "--grace", "24h");
  const withOld = await listFromBoth(cluster, authorization);
  const withNew = await listFromBoth(cluster, `Bearer ${stdout.trim()}`);

  assertEquals(statuses([...withOld, ...withNew]), [200, 200, 200, 200]);
});

Deno.test("servers admit a spent key at the next request when keys plan gives it more", async () => {
  await using cluster = await Cluster.start();
  const { id, authorization } = await cluster.store.issueKey({ perDay: 1 });
  await untilRefused(cluster, authorization, "rate_limit_day");

  const { code } = await cluster.store.run("keys", "plan", id, "business");
  const answers = await listFromBoth(cluster, authorization);

  assertEquals(code, 0);
  assertEquals(statuses(answers), [200, 200]);
  assertEquals(answers[0]?.headers.get("x-ratelimit-limit"), "1000");
});

Deno.test("servers end a ban at the next request when keys unban lifts it", async () => {
  await using cluster = await Cluster.start();
  const { id, authorization } = await cluster.store.issueKey({ perMinute: 2 });
  await untilRefused(cluster, authorization, "key_banned");

  const { code } = await cluster.store.run("keys", "unban", id);
  const answers = await listFromBoth(cluster, authorization);

  assertEquals(code, 0);
  for (const banned of codes(answers)) assertNotEquals(banned, "key_banned");
});

/** The answers of both servers, the one after the other. */
async function listFromBoth(cluster: Cluster, authorization: string): Promise<Answer[]> {
  return [await cluster.list(0, authorization), await cluster.list(1, authorization)];
}

/** Sends requests to both servers until each has refused with the code. */
async function untilRefused(cluster: Cluster, authorization: string, code: string): Promise<void> {
  for (let round = 0; round < 10; round++) {
    const found = codes(await listFromBoth(cluster, authorization));
    if (found.every((each) => each === code)) return;
  }
  throw new Error(`The key was not refused with ${code}`);
}

function statuses(answers: readonly Answer[]): number[] {
  return answers.map(({ status }) => status);
}

function codes(answers: readonly Answer[]): unknown[] {
  return answers.map(({ json }) => errorCode(json));
}
