import { assert, assertEquals, assertMatch } from "@std/assert";
import { errorCode } from "./client.ts";
import type { ServerProcess } from "./server_process.ts";
import { TemporaryStore } from "./temporary_store.ts";

Deno.test("server writes a line of JSON a request, without the key, when ACCESS_LOG is json", async () => {
  await using store = await TemporaryStore.create();
  const { id, authorization } = await store.issueKey();
  await using server = await store.serve({ ACCESS_LOG: "json" });

  await get(server, "/v1/pets?limit=5", { authorization, "x-request-id": "trace-1" });
  await get(server, "/v1/pets/77", { authorization, "x-request-id": "trace-2" });
  await get(server, "/v1/pets", { authorization: `${authorization}x`, "x-request-id": "trace-3" });
  await get(server, "/somewhere", { "x-request-id": "trace-4" });
  server.signal("SIGTERM");
  const { code, stdout, errorLines } = await server.ended();

  assertEquals(code, 0);
  const records = stdout.trim().split("\n").map(readRecord);
  assertEquals(records.map(({ time: _time, ms: _ms, ...record }) => record), [
    { id: "trace-1", method: "GET", route: "/v1/pets", status: 200, keyId: id },
    { id: "trace-2", method: "GET", route: "/v1/pets/:petId", status: 404, keyId: id },
    { id: "trace-3", method: "GET", route: "/v1/pets", status: 401, keyId: "" },
    { id: "trace-4", method: "GET", route: "", status: 404, keyId: "" },
  ]);
  for (const { time, ms } of records) {
    assertMatch(String(time), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert(typeof ms === "number" && ms >= 0);
  }
  assert(!`${stdout}${errorLines}`.includes(authorization.replace("Bearer ", "")));
});

Deno.test("server counts callers by the proxy's word when CLIENT_ADDRESS_HEADER names its header", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({ CLIENT_ADDRESS_HEADER: "X-Forwarded-For" });

  await untilRefused((count) => get(server, "/v1/pets", { "x-forwarded-for": `10.0.0.${count}, 192.0.2.1` }));
  const other = await get(server, "/v1/pets", { "x-forwarded-for": "192.0.2.1, 192.0.2.2" });

  assertEquals(other.status, 401);
  assertEquals(other.headers.get("x-ratelimit-remaining"), "59");
});

Deno.test("server takes nobody's word for an address when CLIENT_ADDRESS_HEADER is not set", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve();

  await untilRefused((count) => get(server, "/v1/pets", { "x-forwarded-for": `192.0.2.${count}` }));

  assertEquals((await get(server, "/v1/pets", { authorization })).status, 200);
});

Deno.test("server refuses the other environment's keys when ENVIRONMENT is production", async () => {
  await using store = await TemporaryStore.create();
  const { authorization } = await store.issueKey();
  await using server = await store.serve({ ENVIRONMENT: "production" });

  const { status, json } = await get(server, "/v1/pets", { authorization });

  assertEquals(status, 401);
  assertEquals(errorCode(json), "invalid_api_key");
});

async function get(
  server: ServerProcess,
  path: string,
  headers: Record<string, string>,
): Promise<{ status: number; headers: Headers; json: unknown }> {
  const response = await fetch(`${server.origin}${path}`, { headers });
  return { status: response.status, headers: response.headers, json: await response.json() };
}

/** Sends requests without a key, told their count, until one is answered 429: 60 a minute are not. */
async function untilRefused(send: (count: number) => Promise<{ status: number }>): Promise<void> {
  for (let count = 1; count <= 200; count++) {
    const { status } = await send(count);
    if (status === 429) return;
    assertEquals(status, 401);
  }
  throw new Error("The limit without a key was not reached");
}

function readRecord(line: string): Record<string, unknown> {
  return JSON.parse(line);
}
