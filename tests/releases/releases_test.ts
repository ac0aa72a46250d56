import { assertEquals, assertRejects } from "@std/assert";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { openStore } from "../../src/engine/mod.ts";
import { openCollections, rebuild, ResourceError } from "../../src/resource/mod.ts";
import { HAS_ANIMALS, SHIPPED } from "../process/shipped.ts";
import { Harness } from "../support/harness.ts";
import { assertConsistent } from "../support/stored_rows.ts";
import type { WrittenStore } from "./write.ts";

const REX = { name: "Rex", categoryId: 7 };
const FOLDER = import.meta.dirname ?? "";
/** They have animals. */
const RELEASES = [...Deno.readDirSync(FOLDER)].map(({ name }) => name)
  .filter((name) => HAS_ANIMALS && name.endsWith(".json"));
/** Whether a release's lists have the filters of today. Otherwise, the service needs a rebuild. */
const LISTS_ARE_CURRENT = `${SHIPPED.filters}` === `${SHIPPED.rows.filtersBefore}`;
const CASES = RELEASES.flatMap((release) => [
  ...(LISTS_ARE_CURRENT ? [[release, "as they are"] as const] : []),
  [release, "rebuilt"] as const,
]);

Deno.test.each(CASES)("service works on the rows of a release: %s, %s", async (release, state) => {
  const written: WrittenStore = JSON.parse(await Deno.readTextFile(`${FOLDER}/${release}`));
  const folder = await Deno.makeTempDir();
  const path = `${folder}/animals.kv`;
  const kv = await Deno.openKv(path);
  for (const { key, text, count } of written.rows) {
    const value = text === undefined ? new Deno.KvU64(BigInt(count ?? 0)) : new TextEncoder().encode(text);
    await kv.set(key, value);
  }
  const clock = () => written.now;
  let store = await openStore(path, { clock, create: false });
  const others = { ...CATALOGUE, resources: [{ ...SHIPPED, filters: [] }] } as const;
  await assertRejects(
    () => openCollections(store, others, { create: true }),
    ResourceError,
    "filtered by status",
  );
  if (state === "rebuilt") {
    await rebuild(SHIPPED, { catalogue: CATALOGUE, store, clock, notice: () => {} });
    await store.close();
    store = await openStore(path, { clock, create: false });
  }
  const generations = await openCollections(store, CATALOGUE, { create: true });
  const { filters, generation } = JSON.parse(
    new TextDecoder().decode((await kv.get<Uint8Array>(["resources", "pets"])).value ?? undefined),
  );
  assertEquals([filters, generation !== undefined], [SHIPPED.filters.toSorted(), state === "rebuilt"]);
  {
    await using service = new Harness(kv, { store, generations, catalogue: CATALOGUE });
    service.now = written.now;
    const { key, previousKey, closedKey, bannedKey } = written;
    const headers = { "idempotency-key": "once" };

    const list = await service.fetch("GET /v1/pets", { key });
    const states = (await list.json()).map(({ id, status }: { id: number; status: string }) => [id, status]);
    assertEquals(states, [[2, "sold"], [3, "sold"], [4, "available"], [5, "available"]]);
    assertEquals(list.headers.get("x-ratelimit-remaining"), "291");
    const others = [previousKey, closedKey, bannedKey].map((key) => service.fetch("GET /v1/pets", { key }));
    assertEquals((await Promise.all(others)).map(({ status }) => status), [200, 401, 429]);
    const replay = await service.fetch("POST /v1/pets", { key, json: REX, headers });
    assertEquals([replay.headers.get("idempotency-replayed"), (await replay.json()).id], ["true", 5]);
    const usage = await (await service.fetch("GET /v1/account/usage?days=2", { key })).json();
    assertEquals(usage.map(({ admitted }: { admitted: number }) => admitted), [12, 1]);
    for (const [id] of states) {
      const read = await service.fetch(`GET /v1/pets/${id}`, { key });
      const match = { "if-match": read.headers.get("etag") ?? "" };
      const kept = await service.fetch(`PATCH /v1/pets/${id}`, { key, json: {}, headers: match });
      assertEquals([kept.status, await kept.text()], [200, await read.text()]);
    }
    assertEquals((await service.fetch("DELETE /v1/pets/2", { key })).status, 204);
    const added = await service.fetch("POST /v1/pets", { key, json: REX });
    assertEquals([added.status, (await added.json()).id > 5], [201, true]);
    await assertConsistent(kv, [SHIPPED]);
  }
  await store.close();
  await Deno.remove(folder, { recursive: true });
});
