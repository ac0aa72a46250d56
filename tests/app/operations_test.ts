import type { Access } from "../../src/web/operation.ts";
import { ACCESS } from "../../src/resource/access.ts";
import { assertEquals } from "@std/assert";
import {
  addKnownAccounts,
  ALL,
  credentialFor,
  GOOD,
  GOOD_FOR_OPERATORS,
  SAMPLES,
} from "../support/operations.ts";
import { Workshop } from "../support/workshop.ts";

/** Tables with counts of requests and with markers of commits. */
const COUNTING = ["commits", "usage", "usage_days"];

/** The rows of each table. */
async function tablesOf({ kv }: Workshop): Promise<Map<string, string>> {
  const rows = await Array.fromAsync(kv.list({ prefix: [] }));
  const byTable = Map.groupBy(rows, ({ key }) => String(key[0]));
  return new Map([...byTable].map(([table, rows]) => [table, Deno.inspect(rows)]));
}

Deno.test("SAMPLES has a valid request for every operation of the service", () => {
  const tableOf = (access: Access) => access === ACCESS.operator ? GOOD_FOR_OPERATORS : GOOD;
  const unknown = SAMPLES.filter(({ operation: { id, access } }) => !(id in tableOf(access)));

  assertEquals(
    unknown.map(({ operation }) => operation.id),
    [],
    "if not, add it to GOOD or GOOD_FOR_OPERATORS in tests/support/operations.ts",
  );
});

for (const { operation, target, request, status, changes } of SAMPLES) {
  Deno.test(`${operation.id}() returns ${status} to ${target} and changes: ${changes.join(", ") || "nothing"}`, async () => {
    await using workshop = await Workshop.open(ALL);
    await workshop.add({ state: "new" });
    await addKnownAccounts(workshop);
    const before = await tablesOf(workshop);

    const response = await workshop.fetch(target, { ...request, ...credentialFor(operation, workshop.key) });

    assertEquals([response.status, await response.text() === ""], [status, status === 204]);
    const after = await tablesOf(workshop);
    const tables = new Set([...before.keys(), ...after.keys()]);
    const changed = [...tables].filter((table) => before.get(table) !== after.get(table));
    assertEquals(changed.filter((table) => !COUNTING.includes(table)).sort(), changes);
  });
}

for (
  const [operation, target] of [
    ...SAMPLES.filter(({ operation }) => operation.method === "GET").map(({ operation, target }) =>
      [operation, target] as const
    ),
    [{ access: ACCESS.key }, "GET /v1/things/2"] as const,
    [{ access: ACCESS.key }, "GET /nothing"] as const,
  ]
) {
  Deno.test(`service returns the status and headers of ${target} to HEAD`, async () => {
    await using workshop = await Workshop.open(ALL);
    await workshop.add({ state: "new" });
    await addKnownAccounts(workshop);
    // These differ from one request to the next.
    const varying = ["ratelimit", "x-ratelimit-remaining"];
    const send = (target: string) =>
      workshop.fetch(target, {
        ...credentialFor(operation, workshop.key),
        headers: { "x-request-id": "r1" },
      });

    const [get, head] = [await send(target), await send(target.replace("GET", "HEAD"))];

    const lasting = ({ headers }: Response) => [...headers].filter(([name]) => !varying.includes(name));
    assertEquals([head.status, lasting(head)], [get.status, lasting(get)]);
  });
}
