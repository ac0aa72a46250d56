import { assertEquals, assertLessOrEqual } from "@std/assert";
import { call, tally, upTo } from "../../support/client.ts";
import { type Commit, slowly } from "../../support/fake_kv.ts";
import { RecordingService } from "../../support/harness.ts";
import { onServer } from "./server.ts";

/** A request that is charged, but whose handler reads and writes nothing. */
const NOWHERE = "GET /v1/nowhere";

Deno.test("service charges four accounts in a commit to a server", async () => {
  await using service = await RecordingService.open({ backend: onServer });
  const issued = await Array.fromAsync(upTo(35), () => service.createAccount("free"));
  service.forget();

  const replies = await Promise.all(issued.map(({ apiKey }) => call(service, apiKey, NOWHERE)));

  assertEquals(tally(replies), { "404 not_found": 35 });
  service.assertCost({ reads: Infinity, commits: 9 });
  // A marker, the schema version, and two rows of each account.
  for (const { checks } of service.commits) assertLessOrEqual(checks, 10);
});

Deno.test("service sends up to twelve commits at a time to a far KV, for two accounts each", async () => {
  await using service = await RecordingService.open({ backend: onServer });
  const { time } = service;
  const issued = await Array.fromAsync(upTo(34), () => service.createAccount("free"));
  const keys = issued.map(({ apiKey }) => apiKey);
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

  // Fifteen commits of 20 ms, one after the other, would take 300 ms.
  const replies = await time.until(Promise.all(keys.map((key) => call(service, key, NOWHERE))), 100);

  assertEquals(tally(replies), { "404 not_found": 30 });
  assertLessOrEqual(Math.max(...atOnce), 12);
  for (const { checks } of service.commits) assertLessOrEqual(checks, 6);
});
