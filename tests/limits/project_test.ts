import { assertEquals, assertMatch } from "@std/assert";

Deno.test("another project can limit its own tenants, which are stored in its own rows, and add its own metrics", async () => {
  const args = ["run", "--quiet", "--no-lock", "main.ts"];
  const cwd = new URL("project/", import.meta.url);

  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args, cwd }).output();

  const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
  assertEquals([code, err], [0, ""]);
  const { counts, metrics } = JSON.parse(out ?? "");
  assertEquals(counts, [{ 200: 60, 429: 30 }, { 401: 3 }]);
  assertEquals([...metrics.matchAll(/^# TYPE (.*)$/gm)].map(([, family]) => family), [
    "tenants_requests_total counter",
    "tenants_kv_operation_duration_seconds histogram",
    "tenants_kv_failures_total counter",
    "tenants_kv_conflicts_total counter",
    "tenants_round_size histogram",
    "tenants_bans_total counter",
  ]);
  assertMatch(metrics, /^tenants_requests_total{status="200"} 60$/m);
  assertMatch(metrics, /^tenants_kv_operation_duration_seconds_count{operation="write"} [1-9]/m);
  assertMatch(metrics, /^tenants_round_size_count{round="\w+"} [1-9]/m);
});
