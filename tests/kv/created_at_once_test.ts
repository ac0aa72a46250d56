import { assertEquals } from "@std/assert";
import { Store } from "../../src/kv/store.ts";
import { Harness, type HarnessRequest } from "../harness.ts";

const TARGETS = [["POST /v1/pets", 201], ["POST /v1/messages", 202]] as const;

async function createAtOnce(
  services: readonly Harness[],
  target: string,
  requests: readonly HarnessRequest[],
): Promise<Response[]> {
  return await Promise.all(
    requests.flatMap((request, index) => services[index % services.length]?.fetch(target, request) ?? []),
  );
}

function idNumber({ id }: { id: number | string }): number {
  return Number(`${id}`.replace("msg_", ""));
}

for (const [target, created] of TARGETS) {
  for (const maxChecks of [10, 100]) {
    const title =
      `${target} stores all of 300 at once from two instances when a commit takes ${maxChecks} checks`;
    Deno.test(title, async () => {
      using kv = await Deno.openKv(":memory:");
      const services = [1, 2].map(() => new Harness(kv, new Store(kv, { maxChecks })));
      const { secret: key } = await new Harness(kv).issueKey("business");
      const requests = Array.from({ length: 300 }, (_, index) => ({
        key,
        json: { name: `${index}`, categoryId: index, message: `${index}` },
        headers: index % 3 === 0 ? { "idempotency-key": `${index}` } : {},
      }));

      const responses = await createAtOnce(services, target, requests);

      assertEquals(new Set(responses.map(({ status }) => status)), new Set([created]));
      const bodies = await Promise.all(responses.map((response) => response.json()));
      const ids = bodies.map(idNumber).sort((a, b) => a - b);
      assertEquals(ids, Array.from({ length: 300 }, (_, index) => index + 1));
    });
  }

  Deno.test(`${target} stores all of 200 at once when everything in them is as long as it may be`, async () => {
    using service = await Harness.open();
    const { secret: key } = await service.issueKey("business");
    const requests = Array.from({ length: 200 }, (_, index) => ({
      key,
      json: { name: "\u0001".repeat(255), categoryId: index, message: "\u0001".repeat(10_000) },
      headers: { "idempotency-key": `${index}`.padStart(255, "k") },
    }));

    const responses = await createAtOnce([service], target, requests);

    assertEquals(new Set(responses.map(({ status }) => status)), new Set([created]));
    const bodies = await Promise.all(responses.map((response) => response.json()));
    assertEquals(new Set(bodies.map(idNumber)).size, 200);
  });

  Deno.test(`${target} makes one item of each Idempotency-Key when two instances get it many times at once`, async () => {
    using kv = await Deno.openKv(":memory:");
    const services = [1, 2].map(() => new Harness(kv));
    const { secret: key } = await new Harness(kv).issueKey("business");
    const requests = Array.from({ length: 200 }, (_, index) => {
      const name = `${Math.floor(index / 2) % 20}`;
      return { key, json: { name, categoryId: 1, message: name }, headers: { "idempotency-key": name } };
    });

    const responses = await createAtOnce(services, target, requests);

    assertEquals(new Set(responses.map(({ status }) => status)), new Set([created]));
    assertEquals(responses.filter(({ headers }) => headers.has("idempotency-replayed")).length, 180);
    const bodies = await Promise.all(responses.map((response) => response.json()));
    assertEquals(new Set(bodies.map(({ id, name, message }) => `${id} ${name ?? message}`)).size, 20);
    assertEquals(Math.max(...bodies.map(idNumber)), 20);
  });
}
