import { assert, assertEquals } from "@std/assert";
import { DenoProcess } from "./process.ts";
import { addItem, itemWith, LIST, SERVING, SHIPPED } from "./shipped.ts";
import { type Credential, ServedStore } from "./temporary_store.ts";

const COUNT = 20_000;
const REBUILD = ["items", SHIPPED.name, "rebuild"] as const;

/** Stores items of an account, without the rows that are derived from them. */
async function store(kv: Deno.Kv, { id: accountId }: Credential): Promise<void> {
  const encoder = new TextEncoder();
  for (let id = 1; id <= COUNT;) {
    const operation = kv.atomic();
    for (const end = id + 500; id < end; id++) {
      operation.set([...SHIPPED.rows.items, id], encoder.encode(`${itemWith(id)}\n${accountId}`));
    }
    await operation.commit();
  }
  await kv.set(SHIPPED.rows.ids, encoder.encode(`{"next":${COUNT + 1}}`));
}

async function schemaIn(kv: Deno.Kv): Promise<unknown> {
  const { value } = await kv.get<Uint8Array>(["schema"]);
  return JSON.parse(new TextDecoder().decode(value ?? undefined));
}

Deno.test("items rebuild changes nothing if it is killed; after it, a server that still runs stops, and others use the new rows", async () => {
  await using served = await ServedStore.start();
  const { server, key, account } = served;
  using kv = await Deno.openKv(served.store.kvPath);
  await store(kv, account);

  {
    await using killed = new DenoProcess([...SERVING, "-P", "src/process/cli.ts", ...REBUILD], {
      KV_PATH: served.store.kvPath,
    });
    await killed.wrote("stderr", /^10000 items are done\.$/m);
  }
  assertEquals(await schemaIn(kv), { version: 1 });
  const unused = await Array.fromAsync(kv.list({ prefix: ["generations", SHIPPED.name] }, { limit: 1 }));
  assertEquals(unused.length > 0, SHIPPED.filters.length > 0);
  assertEquals((await addItem(server, key)).status, 201);

  const { code, errorLines } = await served.store.run(...REBUILD);
  assertEquals([code, errorLines], [0, [
    "10000 items are done.",
    "20000 items are done.",
    `Rebuilt ${SHIPPED.name}: ${COUNT + 1} items. Now start the release that declares them so.`,
  ]]);
  assertEquals(await schemaIn(kv), { version: 2, revision: 1 });
  assertEquals((await addItem(server, key)).status, 503);
  const outcome = await server.ended();
  assertEquals(outcome.code, 1);
  assert(outcome.errorLines.some((line) => line.includes("have been rewritten since this process started")));

  assertEquals((await served.store.run("items", SHIPPED.name, "delete", `${COUNT}`)).code, 0);
  await using next = await served.store.serve();
  const [filter = ""] = SHIPPED.filters;
  for (const query of ["", `&${filter}=${JSON.parse(itemWith(1))[filter]}`].slice(0, filter === "" ? 1 : 2)) {
    const list = await next.fetch(`${LIST}?limit=2&sort=-id${query}`, { key });
    assertEquals([list.status, await list.text()], [200, `[${itemWith(COUNT + 1)},${itemWith(COUNT - 1)}]`]);
  }
});
