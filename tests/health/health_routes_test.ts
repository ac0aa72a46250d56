import { assertEquals, assertLessOrEqual } from "@std/assert";
import { StoreUnavailable } from "../../src/kv/deadline.ts";
import { Store } from "../../src/kv/store.ts";
import { Harness } from "../harness.ts";
import { assertError } from "../http/assertions.ts";

Deno.test.each([
  ["/health", "alive"],
  ["/ready", "ready"],
])("%s answers anyone that the service is %s", async (path, status) => {
  using service = await Harness.open();

  const response = await service.fetch(`GET ${path}`);

  assertEquals(response.status, 200);
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(response.headers.get("x-ratelimit-limit"), null);
  assertEquals(response.headers.get("www-authenticate"), null);
  assertEquals(await response.json(), { status });
});

Deno.test.each(["/health", "/ready"])("%s is charged neither to the key nor to the address", async (path) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey("free");
  for (let count = 0; count < 61; count++) {
    assertEquals((await service.fetch(`GET ${path}`, count % 2 ? { key } : {})).status, 200);
  }

  const withKey = await service.fetch("GET /v1/pets", { key });
  const without = await service.fetch("GET /v1/pets");

  assertEquals(withKey.headers.get("x-ratelimit-remaining"), "59");
  assertEquals(without.headers.get("x-ratelimit-remaining"), "59");
});

Deno.test.each(["/health", "/ready"])("%s answers an address that has spent its requests", async (path) => {
  using service = await Harness.open();
  for (let count = 0; count < 61; count++) await service.fetch("GET /v1/pets");

  const refused = await service.fetch("GET /v1/pets");
  const response = await service.fetch(`GET ${path}`, { key: "nonsense" });

  assertEquals([refused.status, response.status], [429, 200]);
});

Deno.test("/ready is 503 when KV is closed, while /health is 200", async () => {
  const service = await Harness.open();
  service.kv.close();

  const ready = await service.fetch("GET /ready");
  const health = await service.fetch("GET /health");

  assertEquals(ready.headers.get("retry-after"), "5");
  await assertError(ready, 503, "store_unavailable");
  assertEquals(service.errors.map(({ route, error }) => [route, error]), [
    ["/ready", "StoreUnavailable (BadResource)"],
  ]);
  assertEquals(health.status, 200);
});

Deno.test("/ready is 503 when KV cannot be read", async () => {
  class Unreadable extends Store {
    override get(): Promise<never> {
      return Promise.reject(new StoreUnavailable("The operation failed"));
    }
  }
  using kv = await Deno.openKv(":memory:");
  const service = new Harness(kv, new Unreadable(kv, { maxChecks: 10 }));

  await assertError(await service.fetch("GET /ready"), 503, "store_unavailable");
});

Deno.test("/ready is 503 when KV does not finish a write in time, and 200 once it does again", async () => {
  using kv = await Deno.openKv(":memory:");
  const service = new Harness(kv, new Store(kv, { maxChecks: 10, deadline: 1 }));
  const patient = new Harness(kv);
  const { atomic } = kv;
  kv.atomic = () => {
    const operation = atomic.call(kv);
    operation.commit = () => new Promise(() => {});
    return operation;
  };
  const stalled = await service.fetch("GET /ready");
  kv.atomic = atomic;

  const recovered = await patient.fetch("GET /ready");

  await assertError(stalled, 503, "store_unavailable");
  assertEquals(recovered.status, 200);
});

Deno.test("/ready writes little however many ask at once", async () => {
  using service = await Harness.open();
  let commits = 0;
  const { atomic } = service.kv;
  service.kv.atomic = () => {
    commits++;
    return atomic.call(service.kv);
  };

  const responses = await Promise.all(Array.from({ length: 100 }, () => service.fetch("GET /ready")));

  assertEquals(responses.map(({ status }) => status), new Array(100).fill(200));
  assertLessOrEqual(commits, 2);
  assertEquals((await Array.fromAsync(service.kv.list({ prefix: [] }))).length, 1);
});
