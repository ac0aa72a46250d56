import { assertEquals } from "@std/assert";
import {
  addKnownAccounts,
  ALL,
  credentialFor,
  GOOD,
  GOOD_FOR_OPERATORS,
  SAMPLES,
} from "../support/operations.ts";
import { Shop } from "../support/pets.ts";

/** Tables with counts of requests and with markers of commits. */
const COUNTING = ["commits", "usage", "usage_days"];

/** The rows of each table. */
async function tablesOf({ kv }: Shop): Promise<Map<string, string>> {
  const rows = await Array.fromAsync(kv.list({ prefix: [] }));
  const byTable = Map.groupBy(rows, ({ key }) => String(key[0]));
  return new Map([...byTable].map(([table, rows]) => [table, Deno.inspect(rows)]));
}

Deno.test("SAMPLES has a valid request for every operation of the service", () => {
  const known = [GOOD, GOOD_FOR_OPERATORS].flatMap((table) => Object.keys(table));
  assertEquals(known.sort(), SAMPLES.map(({ operation }) => operation.id).sort());
});

for (const { operation, target, request, status, changes } of SAMPLES) {
  Deno.test(`${operation.id}() returns ${status} to ${target} and changes: ${changes.join(", ") || "nothing"}`, async () => {
    await using shop = await Shop.open(ALL);
    await shop.add("available");
    await addKnownAccounts(shop);
    const before = await tablesOf(shop);

    const response = await shop.fetch(target, { ...request, ...credentialFor(operation, shop.key) });

    assertEquals([response.status, await response.text() === ""], [status, status === 204]);
    const after = await tablesOf(shop);
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
    [{ access: "key" }, "GET /v1/pets/2"] as const,
    [{ access: "key" }, "GET /nothing"] as const,
  ]
) {
  Deno.test(`service returns the status and headers of ${target} to HEAD`, async () => {
    await using shop = await Shop.open(ALL);
    await shop.add("available");
    await addKnownAccounts(shop);
    // These differ from one request to the next.
    const varying = ["ratelimit", "x-ratelimit-remaining"];
    const send = (target: string) =>
      shop.fetch(target, { ...credentialFor(operation, shop.key), headers: { "x-request-id": "r1" } });

    const [get, head] = [await send(target), await send(target.replace("GET", "HEAD"))];

    const lasting = ({ headers }: Response) => [...headers].filter(([name]) => !varying.includes(name));
    assertEquals([head.status, lasting(head)], [get.status, lasting(get)]);
  });
}
