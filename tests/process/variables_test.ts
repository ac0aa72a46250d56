import { assert, assertEquals, assertMatch } from "@std/assert";
import { call, outcome } from "../support/client.ts";
import type { ServerProcess } from "./process.ts";
import { addItem, idIn, LIST, listIds, PATH, SHIPPED } from "./shipped.ts";
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

Deno.test("server reads client addresses only from the header that CLIENT_ADDRESS_HEADER names", async () => {
  await using served = await ServedStore.start();
  await using proxied = await served.store.serve({ CLIENT_ADDRESS_HEADER: "X-Forwarded-For" });
  const remaining = async (server: ServerProcess, forwarded: string) => {
    const { headers } = await call(server, undefined, LIST, {
      headers: { "x-forwarded-for": forwarded },
    });
    return headers.get("x-ratelimit-remaining");
  };
  const lists = ["10.0.0.1, 192.0.2.1", "10.0.0.2, 192.0.2.1", "192.0.2.1, 192.0.2.2"];

  const left = [];
  for (const list of lists) left.push([await remaining(proxied, list), await remaining(served.server, list)]);

  assertEquals(left, [["59", "59"], ["58", "58"], ["59", "57"]]);
});

Deno.test("server rejects staging keys if ENVIRONMENT is production", async () => {
  await using served = await ServedStore.start({ variables: { ENVIRONMENT: "production" } });
  assertEquals(outcome(await call(served.server, served.key, LIST)), "401 invalid_api_key");
});

Deno.test("server applies PUBLIC_URL and MAX_STALENESS_MS", async () => {
  const variables = { PUBLIC_URL: "https://store.example/base/", MAX_STALENESS_MS: "60000" };
  await using served = await ServedStore.start({ variables });
  const { server: lazy, key } = served;
  await using server = await served.store.serve();
  assertEquals(await listIds(lazy, key), []);

  await addItem(server, key);

  assertEquals((await listIds(server, key)).length, 1);
  assertEquals(await listIds(lazy, key), []);
  const { headers, json } = await addItem(lazy, key);
  assertEquals(headers.get("location"), `https://store.example/base${PATH}/${idIn(json)}`);
});
