import { assert, assertEquals } from "@std/assert";
import { jsonOf, type PetRow } from "../../src/pets/pet_row.ts";
import type { Harness } from "../harness.ts";

/** Creates animals from several callers at once, each of whom creates one after the other. */
export async function createMany(
  services: readonly Harness[],
  key: string,
  { callers, each }: { callers: number; each: number },
): Promise<Response[]> {
  const perCaller = Array.from({ length: callers }, async (_, caller) => {
    const service = services[caller % services.length];
    assert(service);
    const responses: Response[] = [];
    for (let pet = 0; pet < each; pet++) {
      const json = { name: `${caller}/${pet}`, categoryId: 1 };
      responses.push(await service.fetch("POST /v1/pets", { key, json }));
    }
    return responses;
  });
  return (await Promise.all(perCaller)).flat();
}

/**
 * Asserts that each of the responses stands for one admission and one animal, and that there are no others.
 * The key is of the Business plan and had not been used before.
 */
export async function assertExact(
  service: Harness,
  keyId: string,
  responses: readonly Response[],
): Promise<void> {
  const total = responses.length;
  const counted = Array.from({ length: total }, (_, index) => index + 1);
  assertEquals(new Set(responses.map(({ status }) => status)), new Set([201]));
  const remaining = responses.map(({ headers }) => Number(headers.get("x-ratelimit-remaining")));
  assertEquals(remaining.sort((a, b) => b - a), counted.map((count) => 1_000 - count));

  const pets: { id: number; name: string }[] = await Promise.all(
    responses.map((response) => response.json()),
  );
  const told = pets.map(({ id, name }) => ({ id, name })).sort((a, b) => a.id - b.id);
  assertEquals(told.map(({ id }) => id), counted);
  assertEquals(new Set(told.map(({ name }) => name)).size, total);

  const rows = await Array.fromAsync(service.kv.list<PetRow>({ prefix: ["pets"] }));
  const stored: { id: number; name: string }[] = rows.map(({ value }) => JSON.parse(jsonOf(value)));
  assertEquals(stored.map(({ id, name }) => ({ id, name })), told);
  const { minuteUsed, dayUsed } = (await service.keys.find(keyId))?.usage ?? {};
  assertEquals([minuteUsed, dayUsed], [total, total]);
}
