import { assertEquals } from "@std/assert";
import manifest from "../../deno.json" with { type: "json" };
import { assertError } from "../support/assertions.ts";
import { FakeKv } from "../support/fake_kv.ts";
import { Harness } from "../support/harness.ts";
import { VirtualTime } from "../support/time.ts";

const PATHS: [path: string, status: string][] = [["/health", "alive"], ["/ready", "ready"]];

Deno.test.each(PATHS)("%s reports to anyone that the service is %s", async (path, status) => {
  await using service = await Harness.open();

  const response = await service.fetch(`GET ${path}`);

  assertEquals(response.status, 200);
  assertEquals(response.headers.get("content-type"), "application/json");
  assertEquals(response.headers.get("x-ratelimit-limit"), null);
  assertEquals(response.headers.get("www-authenticate"), null);
  assertEquals(await response.json(), { status, version: manifest.version });
});

/** A service on a KV in memory. `network` can make its operations fail. */
function serve() {
  const network = { reads: () => Promise.resolve(), commits: () => Promise.resolve(), probes: 0 };
  const kv = new FakeKv().connect({
    read: () => network.reads(),
    commit: async (apply) => {
      network.probes++;
      await network.commits();
      return apply();
    },
  });
  return { network, service: new Harness(kv, { deadline: 100 }) };
}

Deno.test("/ready probes KV once a second, however many requests arrive", async () => {
  using time = new VirtualTime();
  const { network, service } = serve();
  const get = async () => {
    const sent = Promise.all(Array.from({ length: 50 }, () => service.fetch("GET /ready")));
    const statuses = (await time.until(sent, 1)).map(({ status }) => status);
    assertEquals(statuses, new Array(50).fill(200));
    return network.probes;
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

Deno.test.each<[string, "reads" | "commits", () => Promise<void>]>([
  ["cannot be read", "reads", () => Promise.reject(new TypeError("disk I/O error"))],
  ["cannot be written", "commits", () => Promise.reject(new TypeError("disk full"))],
  ["does not respond", "commits", () => new Promise(() => {})],
])(
  "/ready returns 503 while KV %s and 200 afterwards, and /health always returns 200",
  async (_, kind, fail) => {
    using time = new VirtualTime();
    const { network, service } = serve();
    const get = (path: string) => time.until(service.fetch(`GET ${path}`), 1_000);
    const work = network[kind];
    network[kind] = fail;

    const failed = await Promise.all([get("/ready"), get("/ready"), get("/health")]);
    network[kind] = work;
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
