// Metrics, the alerts on them, and the systemd units of the guide for operators.
import { assertEquals, assertGreater, assertGreaterOrEqual, assertLess, assertMatch } from "@std/assert";
import { existsSync } from "node:fs";
import process from "node:process";
import { slugOf } from "../../src/app/service.ts";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { openStore } from "../../src/engine/open.ts";
import { succeeds } from "../process/process.ts";
import { assertError } from "../support/assertions.ts";
import { call, getBanned } from "../support/client.ts";
import { carryOut } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";
import { lacks } from "../support/programs.ts";
import { HAMMER } from "../support/things.ts";
import { NOON } from "../support/time.ts";
import manifest from "../../deno.json" with { type: "json" };

const TOKEN = "0123456789-abcdef~0123456789+abcdef=";
const GUIDE = await Deno.readTextFile(new URL("../../src/operator/README.md", import.meta.url));

/** The samples of a service, by name and labels. */
async function samplesOf(service: Harness): Promise<ReadonlyMap<string, number>> {
  const text = await (await service.fetch("GET /metrics", { key: TOKEN })).text();
  const samples = text.matchAll(/^thing_store_(\S+) (\S+)$/gm);
  return new Map([...samples].map(([, name = "", value]) => [name, Number(value)]));
}

/** A measure of the event loop, as a service has where timers run. */
const eventLoopDelay = { take: () => 0.25 };

Deno.test("GET /metrics returns metrics that the guide names, and nothing without a token", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN, eventLoopDelay });
  await using closed = await Harness.open();

  const { status, headers, body } = await service.fetch("GET /metrics", { key: TOKEN });
  const text = await new Response(body).text();

  assertEquals(status, 200);
  assertEquals(headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  assertEquals(headers.get("cache-control"), "no-store");
  const families = [...text.matchAll(/^# TYPE (?:thing_store_)?(\w+)/gm)].map(([, family = ""]) => family);
  const [section = ""] = /^## Monitor\n[^]*?(?=^## )/m.exec(GUIDE) ?? [];
  assertEquals(families.filter((family) => !section.includes(`\`${family}\``)), []);
  await assertError(await closed.fetch("GET /metrics", { key: TOKEN }), 404, "not_found");
});

Deno.test("METRICS_TOKEN reads metrics and nothing else, also without an operator token", async () => {
  const tokens = ["metrics-token-of-this-one-test-001", "metrics-token-of-this-one-test-002"];
  const metricsTokens = tokens.map((token) => ({ token }));
  await using service = await Harness.open({ operatorToken: TOKEN, metricsTokens });
  await using closed = await Harness.open({ metricsTokens });
  const list = "GET /operator/v1/accounts";

  assertEquals((await service.fetch("GET /metrics", { key: TOKEN })).status, 200);
  for (const key of tokens) {
    for (const one of [service, closed]) assertEquals((await one.fetch("GET /metrics", { key })).status, 200);
    await assertError(await service.fetch(list, { key }), 401, "invalid_operator_token");
    await assertError(await closed.fetch(list, { key }), 404, "not_found");
  }
  const refused = await closed.fetch("GET /metrics", { key: TOKEN });
  await assertError(refused, 401, "invalid_operator_token", /Bearer <METRICS_TOKEN>/);
});

Deno.test("GET /metrics counts requests, admissions, refusals and bans of its own service, each once", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN });
  await using other = await Harness.open({ operatorToken: TOKEN });
  const { apiKey: key } = await service.createAccount();
  const { account: { id: accountId }, apiKey: free } = await service.createAccount("free");
  const before = await samplesOf(service);

  await call(service, key, "POST /v1/things", { json: HAMMER });
  await getBanned(service, free);
  await call(service, undefined, "PROPFIND /v1/things");

  const time = "2027-01-15T12:00:00.000Z";
  assertEquals(service.events, [{ time, event: "ban", accountId, until: "2027-01-15T12:05:00.000Z" }]);
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
  for (const name of ["kv_operation_duration_seconds_count{operation", "round_size_count{round"]) {
    assertGreater([...after.keys()].filter((key) => key.startsWith(name) && grown(key) > 0).length, 1, name);
  }
  const counted = [...(await samplesOf(other)).keys()].filter((name) =>
    /^(requests_t|adm|ref|bans)/.test(name)
  );
  assertEquals(counted, ["bans_total"]);
  for (let ban = 0; ban < 2; ban++) {
    service.now += 300_000;
    assertEquals((await call(service, free)).status, 200);
    await service.app.close();
  }
  assertEquals((await samplesOf(service)).get("bans_total"), after.get("bans_total"));
});

Deno.test("GET /metrics counts a rotation that limits would refuse as a request, but not as admitted or refused", async () => {
  await using service = await Harness.open({ operatorToken: TOKEN });
  const { apiKey: key } = await service.createAccount({ minute: 1, day: 9 });
  await call(service, key);

  const { status } = await call(service, key, "POST /v1/account/key");

  assertEquals(status, 201);
  const counted = [...await samplesOf(service)].filter(([name]) =>
    /^(?:requests|admitted|refused)_total/.test(name)
  );
  assertEquals(Object.fromEntries(counted), {
    'requests_total{route="/v1/things",method="GET",status="200"}': 1,
    'requests_total{route="/v1/account/key",method="POST",status="201"}': 1,
    'admitted_total{plan="enterprise"}': 1,
  });
});

Deno.test("GET /metrics counts refused commits", async () => {
  await using service = await RecordingService.open({ operatorToken: TOKEN });
  const { account: { id }, apiKey } = await service.createAccount("free");
  await service.time.until(call(service, apiKey), 1_000);
  await service.time.advance(1_000);
  const conflicts = async () =>
    (await service.time.until(samplesOf(service), 1_000)).get("kv_conflicts_total") ?? NaN;
  const before = await conflicts();
  service.disturbance = {
    commit: async (commit) => {
      service.disturbance = {};
      await service.accounts.change(id, { name: "new" });
      return await carryOut(commit);
    },
  };

  await service.time.until(call(service, apiKey), 1_000);

  assertEquals(await conflicts(), before + 1);
});

Deno.test("GET /metrics returns the leases held, the load and the start, and no size of a file without one", async () => {
  await using service = await RecordingService.open({ operatorToken: TOKEN, eventLoopDelay });
  const { account: { id }, apiKey } = await service.createAccount();
  for (let count = 0; count < 3; count++) await call(service, apiKey);

  const samples = await service.time.until(samplesOf(service), 1_000);
  const text = await (await service.fetch("GET /metrics", { key: TOKEN })).text();

  const leased = (await service.accounts.find(id))?.usage.leased ?? 0;
  assertGreater(leased, 0);
  assertEquals(samples.get(`build_info{version="${manifest.version}",schema="1"}`), 1);
  const load = ["requests_in_flight", "requests_capacity", "event_loop_delay_seconds"];
  assertEquals(load.map((name) => samples.get(name)), [1, 10_000, 0.25]);
  // The first request took no lease, and the third has used one of its permits.
  const gauges = ["leases", "leased_permits", "leased_places", "kv_file_bytes"];
  assertEquals(gauges.map((name) => samples.get(name)), [1, leased - 1, leased - 1, undefined]);
  const valueOf = (name: string) => Number(RegExp(`^${name} (\\d+(?:\\.\\d+)?)$`, "m").exec(text)?.[1]);
  assertEquals(valueOf("process_start_time_seconds"), performance.timeOrigin / 1_000);
  assertGreater(valueOf("process_resident_memory_bytes"), 1_000_000);
  const { user, system } = process.cpuUsage();
  const seconds = valueOf("process_cpu_seconds_total");
  assertGreater(seconds, 0);
  assertGreaterOrEqual((user + system) / 1_000_000, seconds);
  assertMatch(text, /^# TYPE process_cpu_seconds_total counter$/m);
});

/** Files of alerts: those of operators, and of parts of the service. */
const FILES = ["operator", "messages"].map((folder) =>
  new URL(`../../src/${folder}/alerts.yml`, import.meta.url)
)
  .filter((file) => existsSync(file));
const RULES = (await Promise.all(FILES.map((file) => Deno.readTextFile(file)))).join("\n");

Deno.test("alerts.yml names only metrics that GET /metrics of a service on a KV file returns", async () => {
  const path = `${await Deno.makeTempDir()}/things.kv`;
  const store = await openStore(path, { clock: () => NOON, create: true });
  const service = new Harness(await Deno.openKv(path), {
    store,
    operatorToken: TOKEN,
    catalogue: CATALOGUE,
    eventLoopDelay,
  });
  const text = await (await service.fetch("GET /metrics", { key: TOKEN })).text();
  await service[Symbol.asyncDispose]();
  await store.close();
  await Deno.remove(path.replace("/things.kv", ""), { recursive: true });
  // Texts may name a histogram without a suffix.
  const names = new Set(
    [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name = "", type]) =>
      type === "histogram" ? ["", "_bucket", "_sum", "_count"].map((end) => name + end) : [name]
    ),
  );
  const named = new Set(RULES.match(RegExp(`\\b(?:${slugOf(CATALOGUE.title, "_")}|process)_\\w+`, "g")));

  assertGreater(named.size, 10);
  assertEquals([...named.difference(names)], []);
});

Deno.test("alerts.yml gives every alert a severity, a summary and a description", () => {
  const alerts = RULES.split(/^ +- alert: /m).slice(1);

  assertGreater(alerts.length, 5);
  const parts = [/severity: (critical|warning)/, /summary: \S/, /description: >-\n +\S/];
  assertEquals(alerts.filter((alert) => !parts.every((part) => part.test(alert))), []);
});

Deno.test("guide for operators configures Prometheus with every alerts.yml", () => {
  const root = new URL("../../", import.meta.url).pathname;
  const [block = ""] = /(?<=^```yaml\n)rule_files:[^]*?(?=^```$)/m.exec(GUIDE) ?? [];
  const listed = [...block.matchAll(/^ +- \/srv\/[^/]+\/(.+\.yml)\n/gm)].map(([, path = ""]) => root + path);

  // A fork may have left out a part.
  assertEquals(listed.filter((path) => existsSync(path)), FILES.map(({ pathname }) => pathname));
});

/** The systemd units of the guide, and the files that change copies of the first. */
const [UNIT = "", ...OTHERS] = [...GUIDE.matchAll(/(?<=^```ini\n)\[(?:Unit|Service)\]\n[^]*?(?=^```$)/gm)]
  .map(([text]) => text);
const UNITS = [UNIT, ...OTHERS.map((text) => text.includes("Type=") ? text : UNIT + text)];

Deno.test("guide's systemd unit gives up on a service that fails at once", () => {
  const numberOf = (name: string) => Number(RegExp(`^${name}=(\\d+)$`, "m").exec(UNIT)?.[1]);

  assertLess(numberOf("StartLimitBurst") * numberOf("RestartSec"), numberOf("StartLimitIntervalSec") / 2);
});

Deno.test("guide's systemd units of the service, its backup and denokv confine them alike", () => {
  const confining = /^(?:Protect|Private|Restrict|NoNew|Capability|SystemCall|UMask|MemoryMax)\w*=.*$/gm;
  const [options = [], ...others] = UNITS.map((text): string[] => text.match(confining) ?? []);

  assertGreater(options.length, 15);
  assertEquals(others.map((own) => options.filter((option) => !own.includes(option))), [[], [], []]);
});

Deno.test({
  name: "guide's systemd units have an exposure under 3",
  ignore: lacks("systemd-analyze"),
  async fn() {
    const folder = await Deno.makeTempDir();
    try {
      for (const [index, text] of UNITS.entries()) {
        const path = `${folder}/store${index}.service`;
        await Deno.writeTextFile(path, text);
        await succeeds("systemd-analyze", "security", "--offline=true", "--threshold=29", "--no-pager", path);
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});
