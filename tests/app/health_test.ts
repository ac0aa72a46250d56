import { assertEquals } from "@std/assert";
import manifest from "../../deno.json" with { type: "json" };
import { pause } from "../../src/base/time.ts";
import { assertError } from "../support/assertions.ts";
import { type Disturbance, fail } from "../support/fake_kv.ts";
import { Harness, RecordingService } from "../support/harness.ts";

const PATHS: [path: string, status: string][] = [["/health", "alive"], ["/ready", "ready"]];

Deno.test.each(PATHS)("%s reports to anyone that the service is %s", async (path, status) => {
  await using service = await Harness.open();

  const response = await service.fetch(`GET ${path}`);

  assertEquals(response.status, 200);
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(response.headers.get("cache-control"), "no-store");
  assertEquals(response.headers.get("x-ratelimit-limit"), null);
  assertEquals(response.headers.get("www-authenticate"), null);
  assertEquals(await response.json(), { status, version: manifest.version });
});

Deno.test("/ready probes KV once a second, however many requests arrive", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const get = async () => {
    const sent = Promise.all(Array.from({ length: 50 }, () => service.fetch("GET /ready")));
    const statuses = (await time.until(sent, 1)).map(({ status }) => status);
    assertEquals(statuses, new Array(50).fill(200));
    return service.commits.length;
  };

  const first = await get();
  await time.advance(998);
  const within = await get();
  await time.advance(2);
  const after = await get();
  await time.advance(1_000);
  const last = await get();

  assertEquals([within - first, after - within, last - after], [0, 1, 1]);
});

Deno.test.each<[string, Disturbance]>([
  ["cannot be read", { read: fail }],
  ["cannot be written", { commit: fail }],
  ["does not respond in time", { commit: () => pause(300).then(fail) }],
])(
  "/ready returns 503 while KV %s and 200 afterwards, and /health always returns 200",
  async (_, disturbance) => {
    await using service = await RecordingService.open({ deadline: 100 });
    const { time } = service;
    const get = (path: string) => time.until(service.fetch(`GET ${path}`), 1_000);
    service.expectsErrors = true;
    service.disturbance = disturbance;

    const failed = await Promise.all([get("/ready"), get("/ready"), get("/health")]);
    service.disturbance = {};
    const tooSoon = await get("/ready");
    await time.advance(1_000);
    const recovered = await get("/ready");

    assertEquals(failed.map(({ status }) => status), [503, 503, 200]);
    assertEquals([tooSoon.status, recovered.status], [503, 200]);
    assertEquals(failed[0]?.headers.get("retry-after"), "5");
    await assertError(tooSoon, 503, "store_unavailable");
    assertEquals(new Set(service.errors.map(({ route }) => route)), new Set(["/ready"]));
  },
);
