import { assert, assertEquals, assertGreaterOrEqual, assertMatch } from "@std/assert";
import { call, outcome } from "../support/client.ts";
import { runCommand, type ServerProcess } from "./process.ts";
import { addItem, idIn, LIST, listIds, METRIC, PATH, SHIPPED } from "./shipped.ts";
import { ServedStore } from "./temporary_store.ts";

const TOKEN = "a-token-that-nobody-else-can-know";
const OLD_TOKEN = "the-token-that-was-sent-until-now";
const METRICS_TOKEN = "the-token-that-only-prometheus-has";

Deno.test("server logs a line of JSON per request, without secrets, if ACCESS_LOG is json", async () => {
  const variables = { ACCESS_LOG: "json", OPERATOR_TOKEN: `${TOKEN},${OLD_TOKEN}`, METRICS_TOKEN };
  await using served = await ServedStore.start({ variables });
  const { server, account: { id, key } } = served;

  const requests = [[key, "trace-1"], [`${key}x`, key], [key, TOKEN], [key, OLD_TOKEN], [key, METRICS_TOKEN]];
  for (const [sent, trace = ""] of requests) {
    await call(server, sent, `${LIST}/77`, { headers: { "x-request-id": trace } });
  }
  const { code, stdout, errorLines } = await server.stop();

  assertEquals(code, 0);
  const records: Record<string, unknown>[] = stdout.trim().split("\n").map((line) => JSON.parse(line));
  const common = { address: "127.0.0.1", method: "GET", route: `${PATH}/:${SHIPPED.id}` };
  const notFound = { ...common, status: 404, code: SHIPPED.errors.notFound.code, accountId: id };
  assertEquals(records.map(({ time: _time, ms: _ms, ...record }) => record), [
    { id: "trace-1", ...notFound },
    { id: "[secret]", ...common, status: 401, code: "invalid_api_key", accountId: "" },
    ...Array(3).fill({ id: "[secret]", ...notFound }),
  ]);
  for (const { time, ms } of records) {
    assertMatch(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert(typeof ms === "number" && ms >= 0);
  }
  assert(!`${stdout}${errorLines}`.includes(key));
});

Deno.test("server applies its variables, and runs the commands of its OPERATOR_TOKEN alone", async () => {
  await using served = await ServedStore.start();
  const { server: plain, key, store } = served;
  await using server = await store.serve({
    ENVIRONMENT: "production",
    CLIENT_ADDRESS_HEADER: "X-Forwarded-For",
    PUBLIC_URL: "https://store.example/base/",
    OPERATOR_TOKEN: TOKEN,
  });
  const remaining = async (server: ServerProcess, forwarded: string) => {
    const headers = { "x-forwarded-for": forwarded };
    return (await call(server, undefined, LIST, { headers })).remaining;
  };
  const left = [];
  for (const list of ["10.0.0.1, 192.0.2.1", "10.0.0.2, 192.0.2.1", "192.0.2.1, 192.0.2.2"]) {
    left.push([await remaining(server, list), await remaining(plain, list)]);
  }
  const run = (OPERATOR_TOKEN: string, ...args: string[]) =>
    runCommand(args, { SERVICE_URL: server.origin, OPERATOR_TOKEN, KV_PATH: "/nowhere" });

  const created = await run(TOKEN, "accounts", "create", "me");
  const refused = await run(TOKEN.toUpperCase(), "accounts", "list");
  const { headers, json } = await addItem(server, created.stdout.trim());

  assertEquals(left, [[59, 59], [58, 58], [59, 57]]);
  assertEquals(outcome(await call(server, key, LIST)), "401 invalid_api_key");
  assertEquals([created.code, refused.code, refused.stdout], [0, 1, ""]);
  assertEquals(refused.errorLines, ["OPERATOR_TOKEN is not this service's token."]);
  assertEquals(headers.get("location"), `https://store.example/base${PATH}/${idIn(json)}`);
});

Deno.test("server applies MAX_STALENESS_MS, and reports the size of its KV file, which it may not read", async () => {
  await using served = await ServedStore.start({ variables: { MAX_STALENESS_MS: "60000", METRICS_TOKEN } });
  const { server: lazy, key, store } = served;
  await using server = await store.serve();
  assertEquals(await listIds(lazy, key), []);

  await addItem(server, key);

  assertEquals((await listIds(server, key)).length, 1);
  assertEquals(await listIds(lazy, key), []);
  const files = await Promise.all(["", "-wal"].map((end) => Deno.stat(store.kvPath + end)));
  const metrics = await (await lazy.fetch("GET /metrics", { key: METRICS_TOKEN })).text();
  const bytes = Number(new RegExp(`^${METRIC}_kv_file_bytes (\\d+)$`, "m").exec(metrics)?.[1]);
  assertGreaterOrEqual(bytes, files.reduce((sum, { size }) => sum + size, 0));
});
