import { assertEquals, assertGreater } from "@std/assert";
import manifest from "../../deno.json" with { type: "json" };
import { openStore } from "../../src/engine/open.ts";
import { assertError } from "../support/assertions.ts";
import { call, getBanned } from "../support/client.ts";
import { carryOut, fail } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { HAMMER } from "../support/things.ts";
import { NOON } from "../support/time.ts";

const TOKEN = "0123456789-abcdef~0123456789+abcdef=";

/** The samples of a service, by name and labels. */
async function samplesOf(service: Harness): Promise<ReadonlyMap<string, number>> {
  const text = await (await service.fetch("GET /metrics", { key: TOKEN })).text();
  const samples = text.matchAll(/^thing_store_(\S+) (\S+)$/gm);
  return new Map([...samples].map(([, name = "", value]) => [name, Number(value)]));
}

Deno.test("GET /metrics returns every metric, and only to the operator", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN });
  await using closed = await Harness.open();

  const { status, headers, body } = await service.fetch("GET /metrics", { key: TOKEN });
  const text = await new Response(body).text();

  assertEquals(status, 200);
  assertEquals(headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  assertEquals(headers.get("cache-control"), "no-store");
  const families = [...text.matchAll(/^# TYPE thing_store_(.*)$/gm)].map(([, family]) => family);
  // Those of optional parts follow.
  assertEquals(families.slice(0, families.indexOf("leased_places gauge") + 1), [
    "build_info gauge",
    "requests_total counter",
    "request_duration_seconds histogram",
    "admitted_total counter",
    "refused_total counter",
    "bans_total counter",
    "kv_operation_duration_seconds histogram",
    "kv_failures_total counter",
    "kv_conflicts_total counter",
    "round_size histogram",
    "log_lines_dropped_total counter",
    "requests_in_flight gauge",
    "leases gauge",
    "leased_places gauge",
  ]);
  await assertError(await service.fetch("GET /metrics"), 401, "invalid_operator_token");
  await assertError(await closed.fetch("GET /metrics", { key: TOKEN }), 404, "not_found");
});

Deno.test("METRICS_TOKEN reads metrics and nothing else, also without an operator token", async () => {
  const metricsTokens = ["metrics-token-of-this-one-test-001", "metrics-token-of-this-one-test-002"];
  await using service = await Harness.open({ operatorToken: TOKEN, metricsTokens });
  await using closed = await Harness.open({ metricsTokens });

  for (const key of metricsTokens) {
    assertEquals((await service.fetch("GET /metrics", { key })).status, 200);
    assertEquals((await closed.fetch("GET /metrics", { key })).status, 200);
    await assertError(
      await service.fetch("GET /operator/v1/accounts", { key }),
      401,
      "invalid_operator_token",
    );
    await assertError(await closed.fetch("GET /operator/v1/accounts", { key }), 404, "not_found");
  }
  await assertError(
    await closed.fetch("GET /metrics", { key: TOKEN }),
    401,
    "invalid_operator_token",
    /Bearer <METRICS_TOKEN>/,
  );
});

Deno.test("GET /metrics counts requests, admissions, refusals and bans", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN });
  const { apiKey: key } = await service.createAccount();
  const { apiKey: free } = await service.createAccount("free");
  const before = await samplesOf(service);

  await call(service, key, "POST /v1/things", { json: HAMMER });
  await getBanned(service, free);
  await call(service, undefined, "PROPFIND /v1/things");

  const after = await samplesOf(service);
  const grown = (name: string) => (after.get(name) ?? NaN) - (before.get(name) ?? 0);
  const counts = {
    'requests_total{route="/v1/things",method="POST",status="201"}': 1,
    'requests_total{route="/v1/things",method="GET",status="200"}': 60,
    'requests_total{route="/v1/things",method="GET",status="429"}': 301,
    'requests_total{route="/v1/things",method="other",status="405"}': 1,
    'request_duration_seconds_count{route="/v1/things"}': 363,
    'admitted_total{plan="business"}': 1,
    'admitted_total{plan="free"}': 60,
    'admitted_total{plan=""}': 1,
    'refused_total{plan="free",code="rate_limit_minute"}': 300,
    'refused_total{plan="free",code="key_banned"}': 1,
    "bans_total": 1,
  };
  assertEquals(Object.fromEntries(Object.keys(counts).map((name) => [name, grown(name)])), counts);
  for (
    const name of [
      ...["read", "write"].map((kind) => `kv_operation_duration_seconds_count{operation="${kind}"}`),
      ...["check", "commit"].map((round) => `round_size_count{round="${round}"}`),
    ]
  ) assertGreater(grown(name), 0, name);
});

Deno.test("GET /metrics counts only its own service, not another one in the same process", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN });
  await using other = await Harness.open({ operatorToken: TOKEN });
  const { apiKey } = await service.createAccount();
  await call(service, apiKey);

  const [own, others] = [await samplesOf(service), await samplesOf(other)];

  const requests = 'requests_total{route="/v1/things",method="GET",status="200"}';
  assertEquals([own.get(requests), others.get(requests)], [1, undefined]);
  const commits = 'kv_operation_duration_seconds_count{operation="write"}';
  assertEquals([(own.get(commits) ?? 0) > 0, others.get(commits)], [true, undefined]);
});

Deno.test("GET /metrics counts a ban once, despite later commits for the account", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN });
  const { apiKey } = await service.createAccount("free");
  const before = await samplesOf(service);
  await getBanned(service, apiKey);

  for (let minute = 0; minute < 3; minute++) {
    service.now += 300_000;
    assertEquals((await call(service, apiKey)).status, 200);
    await service.app.settle();
  }

  const after = await samplesOf(service);
  assertEquals((after.get("bans_total") ?? NaN) - (before.get("bans_total") ?? 0), 1);
});

Deno.test("GET /metrics counts failed KV operations and refused commits", async () => {
  await using service = await RecordingService.open({ operatorToken: TOKEN });
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount("free");
  await time.until(call(service, apiKey), 1_000);
  await time.advance(1_000);
  const before = await time.until(samplesOf(service), 1_000);

  service.expectsErrors = true;
  service.disturbance = { read: fail };
  await time.until(call(service, apiKey), 1_000);
  service.disturbance = {
    commit: async (commit) => {
      service.disturbance = {};
      await service.accounts.change(id, { name: "new" });
      return await carryOut(commit);
    },
  };
  await time.until(call(service, apiKey), 1_000);

  const after = await time.until(samplesOf(service), 1_000);
  const grown = ['kv_failures_total{operation="read"}', "kv_conflicts_total"].map((name) =>
    (after.get(name) ?? NaN) - (before.get(name) ?? 0)
  );
  assertEquals(grown, [1, 1]);
});

Deno.test("GET /metrics returns start time, memory and, for a KV file, its size", async () => {
  const folder = await Deno.makeTempDir();
  const path = `${folder}/things.kv`;
  const store = await openStore(path, { clock: () => NOON, create: true });
  const kv = await Deno.openKv(path);
  {
    await using service = new Harness(kv, { store, operatorToken: TOKEN });
    await using inMemory = await Harness.open({ operatorToken: TOKEN });

    const text = await (await service.fetch("GET /metrics", { key: TOKEN })).text();
    const without = await samplesOf(inMemory);

    const valueOf = (name: string) => Number(RegExp(`^${name} (\\d+(?:\\.\\d+)?)$`, "m").exec(text)?.[1]);
    assertEquals(valueOf("process_start_time_seconds"), performance.timeOrigin / 1_000);
    assertGreater(valueOf("process_resident_memory_bytes"), 1_000_000);
    assertEquals(valueOf("thing_store_kv_file_bytes"), store.fileSize);
    assertEquals(without.has("kv_file_bytes"), false);
  }
  await store.close();
  await Deno.remove(folder, { recursive: true });
});

const GAUGES: readonly string[] = ["requests_in_flight", "leases", "leased_places"];

function gaugesIn(samples: ReadonlyMap<string, number>): [name: string, value: number][] {
  return [...samples].filter(([name]) => GAUGES.includes(name));
}

Deno.test("GET /metrics returns the leases held", async () => {
  await using service = await RecordingService.open({ operatorToken: TOKEN });
  const { account: { id }, apiKey } = await service.createAccount();
  for (let count = 0; count < 2; count++) await call(service, apiKey);

  const samples = await service.time.until(samplesOf(service), 1_000);

  const leased = (await service.accounts.find(id))?.usage.leased ?? 0;
  assertGreater(leased, 0);
  assertEquals(samples.get(`build_info{version="${manifest.version}",schema="1"}`), 1);
  assertEquals(gaugesIn(samples), [
    ["requests_in_flight", 1],
    ["leases", 1],
    ["leased_places", leased - 1], // The second request has used one.
  ]);
});
