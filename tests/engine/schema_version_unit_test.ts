import { assertEquals, assertRejects } from "@std/assert";
import { encodeJson, encodeText } from "../../src/engine/row.ts";
import { requireSchema } from "../../src/engine/schema_version.ts";
import { disturbed, locked, onFile } from "../support/fake_kv.ts";

const VERSION_1 = encodeJson({ version: 1 });

async function rowsOf(kv: Deno.Kv): Promise<unknown[]> {
  return (await Array.fromAsync(kv.list({ prefix: [] }))).map(({ key, value }) => [key, value]);
}

Deno.test("requireSchema() sets version 1 in a KV with only markers, even if the file is locked, and accepts it", async () => {
  using kv = await Deno.openKv(":memory:");
  for (const key of [["commits", "probe"], ["commits", "process", 1]]) await kv.set(key, encodeJson({}));
  let tries = 0;
  const rough = disturbed(kv, { commit: ({ apply }) => ++tries < 3 ? locked() : apply() });

  for (const create of [true, true, false]) await requireSchema(onFile(rough, { clock: () => 0 }), create);

  assertEquals((await rowsOf(kv)).slice(2), [[["schema"], VERSION_1]]);
  assertEquals(tries, 3);
});

Deno.test.each([
  [
    "no rows when create is false",
    undefined,
    false,
    "it is empty, and only the service creates its first rows",
  ],
  ["foreign rows", ["foreign", 7], true, "it contains rows from another program"],
  [
    "version 3",
    ["schema", encodeJson({ version: 3 })],
    true,
    "have version 3, but this service expects version 2",
  ],
  ["no version", ["schema", encodeJson({})], true, "its rows have version undefined"],
  ["a version that is not JSON", ["schema", encodeText("1.")], true, "it contains rows from another program"],
])("requireSchema() rejects a KV with %s, and leaves it unchanged", async (_, row, create, message) => {
  using kv = await Deno.openKv(":memory:");
  if (row) await kv.set(row.slice(0, 1) as Deno.KvKey, row[1]);
  const before = await rowsOf(kv);

  await assertRejects(() => requireSchema(onFile(kv, { clock: () => 0 }), create), Error, message);

  assertEquals(await rowsOf(kv), before);
});

for (const turn of [1, 2, 3]) {
  Deno.test(`requireSchema() accepts a KV that another process sets up just before access ${turn}`, async () => {
    using kv = await Deno.openKv(":memory:");
    let accesses = 0;
    const onAccess = async () => {
      if (++accesses === turn) await requireSchema(onFile(kv, { clock: () => 0 }), true);
    };
    const shared = disturbed(kv, {
      read: onAccess,
      commit: async ({ apply }) => (await onAccess(), await apply()),
    });

    await requireSchema(onFile(shared, { clock: () => 0 }), true);

    assertEquals(await rowsOf(kv), [[["schema"], VERSION_1]]);
  });
}
