import { assertEquals, assertLess, assertRejects, assertStrictEquals } from "@std/assert";
import { CorruptRow, encodeText, Store, Transactions, Versions } from "../../src/engine/mod.ts";
import { type Item, type ItemPage, Items, type Resource } from "../../src/resource/mod.ts";
import { type Disturbance, disturbed, onFile } from "../support/fake_kv.ts";
import { type Thing, THINGS } from "../support/things.ts";

const ACCOUNT = "a";

/** A collection as one process sees and changes it, by default things. */
function collectionOn(kv: Deno.Kv, resource: Resource<Thing> = THINGS, disturbance: Disturbance = {}) {
  const store = new Store(onFile(disturbed(kv, disturbance), { clock: () => 0 }));
  const transactions = new Transactions(store, { clock: () => 0 });
  const items = new Items(resource, { store, transactions, versions: new Versions(store) });
  return {
    items,
    async add(fields: Omit<Thing, "id">, ownerId = ACCOUNT): Promise<unknown> {
      const item = { id: await items.ids.next(), ...fields };
      return JSON.parse((await transactions.run(items.adding(item, ownerId, 0))).result);
    },
    /** Changes fields of an item, or deletes it. */
    async change(id: number, change: Partial<Thing> | null): Promise<Item | null> {
      const changed = await items.change(id, (owned) => change && owned && { ...owned.item, ...change }, {
        ...{ accountId: "", now: 0 },
        transact: async (transaction) => (await transactions.run(transaction)).result,
      });
      return changed?.item ?? null;
    },
  };
}

function upTo(end: number): number[] {
  return Array.from({ length: end }, (_, index) => index + 1);
}

function numbered(number: number) {
  return { name: `Hammer ${number}`, weight: 7, state: "used", isSpare: true } as const;
}

function idsIn({ json }: ItemPage): number[] {
  return JSON.parse(json).map(({ id }: Item) => id);
}

/** Keys and texts of the rows of a collection, without versions, ids and markers. */
async function rowsOf(kv: Deno.Kv): Promise<Map<string, string>> {
  const entries = await Array.fromAsync(kv.list<Uint8Array>({ prefix: [] }));
  const rows = entries.filter(({ key: [table] }) => table === "items" || table === "items_by");
  return new Map(rows.map(({ key, value }) => [key.join("/"), new TextDecoder().decode(value)]));
}

Deno.test("Items.adding() adds hundreds of items with ascending ids in a few commits", async () => {
  using kv = await Deno.openKv(":memory:");
  let commits = 0;
  const things = collectionOn(kv, THINGS, { commit: ({ apply }) => (commits++, apply()) });

  const added = await Promise.all(upTo(350).map((number) => things.add(numbered(number))));

  assertEquals(added, upTo(350).map((id) => ({ id, ...numbered(id) })));
  assertLess(commits, 10);
});

Deno.test("Items.find() reads once for simultaneous calls", async () => {
  using kv = await Deno.openKv(":memory:");
  let reads = 0;
  const things = collectionOn(kv, THINGS, { read: () => void reads++ });
  await Promise.all([things.add(numbered(1)), things.add(numbered(2))]);
  reads = 0;

  const found = await Promise.all([1, 2, 1, 2, 9].map((id) => things.items.find(id)));

  assertEquals(reads, 1);
  assertEquals(found.map((one) => one && JSON.parse(one.json).id), [1, 2, 1, 2, null]);
});

Deno.test("Items.listOwned() returns items with their owners, in either order, from a cursor on", async () => {
  using kv = await Deno.openKv(":memory:");
  const things = collectionOn(kv);
  for (const number of upTo(5)) await things.add(numbered(number), `${number}`);
  const owned = upTo(5).map((id) => ({ item: { id, ...numbered(id) }, ownerId: `${id}` }));

  assertEquals(await things.items.listOwned(3), owned.slice(0, 3));
  assertEquals(await things.items.listOwned(3, { cursor: 3 }), owned.slice(3));
  assertEquals(await things.items.listOwned(3, { sort: "-id" }), owned.slice(2).reverse());
  assertEquals(await things.items.listOwned(3, { cursor: -3 }), owned.slice(0, 2).reverse());
});

Deno.test.each([
  ["[]", "Item 1 of things is not a thing"],
  ["{", "Item 1 of things is not a thing"],
  ['{"id":1,"weight":1}', "In item 1 of things, the field name is missing"],
  [
    '{"id":1,"name":"Hammer","weight":"1"}',
    "In item 1 of things, the field weight has a value that is not declared",
  ],
])("Items.change() rejects a row that is not an item: %s", async (json, message) => {
  using kv = await Deno.openKv(":memory:");
  await kv.set(["items", "things", 1], encodeText(`${json}\na`));

  const { message: thrown } = await assertRejects(() => collectionOn(kv).change(1, null), CorruptRow);
  assertEquals(thrown, message);
});

Deno.test.each<[readableBy: Resource["readableBy"], start: string, names: string[]]>([
  ["everyone", "", ["isSpare", "isSpare,state", "state"]],
  ["owner", "/me", ["", "isSpare", "isSpare,state", "state"]],
])(
  "Items keeps a row for each combination of filters, with the same content, after every change, if %s may read",
  async (readableBy, start, names) => {
    using kv = await Deno.openKv(":memory:");
    const things = collectionOn(kv, { ...THINGS, readableBy });
    const change = (change: Partial<Thing> | null) => things.change(1, change);
    const expect = async (thing: { name: string; isSpare: boolean; state: string }) => {
      const text = `${JSON.stringify({ id: 1, ...thing })}\nme`;
      const ends: Record<string, string> = {
        "": "",
        state: `/${thing.state}`,
        isSpare: `/${thing.isSpare}`,
        "isSpare,state": `/${thing.isSpare}/${thing.state}`,
      };
      const keys = names.map((name) => `items_by/things/${name}${start}${ends[name]}/1`);
      assertEquals(await rowsOf(kv), new Map(["items/things/1", ...keys].map((key) => [key, text])));
    };

    await things.add(numbered(1), "me");
    await expect(numbered(1));
    await change({ name: "Saw" });
    await expect({ ...numbered(1), name: "Saw" });
    await change({ isSpare: false });
    await expect({ ...numbered(1), name: "Saw", isSpare: false });
    await change(null);
    assertEquals(await rowsOf(kv), new Map());
  },
);

Deno.test("Items.list() combines filters in either order, and reads only the rows that it returns and the next", async () => {
  using kv = await Deno.openKv(":memory:");
  const things = collectionOn(kv);
  const kinds = (["new", "used", "lost"] as const).flatMap((state) =>
    [true, false].map((isSpare) => ({ state, isSpare }))
  );
  const all = [...kinds, ...kinds].map((kind, index) => ({ id: index + 1, ...numbered(1), ...kind }));
  for (const { id: _, ...thing } of all) await things.add(thing);

  for (const filters of [{}, ...kinds, { state: "lost" }, { isSpare: true }]) {
    const isListed = (thing: object) =>
      Object.entries({ ...thing, ...filters }).join() === Object.entries(thing).join();
    const expected = all.filter(isListed).map(({ id }) => id);
    for (const sort of ["id", "-id"] as const) {
      const seen: number[] = [];
      let page: ItemPage | undefined;
      do {
        page = await things.items.list({ ...filters, limit: 1, sort, cursor: page?.next }, ACCOUNT);
        assertEquals(idsIn(page).length, 1);
        seen.push(...idsIn(page));
      } while (page.next !== undefined);
      assertEquals([filters, seen], [filters, sort === "id" ? expected : expected.toReversed()]);
    }
  }
});

Deno.test("Items.list() returns an earlier page exactly if none of its rows has changed", async () => {
  using kv = await Deno.openKv(":memory:");
  const things = collectionOn(kv);
  const { items } = things;
  const rename = (id: number) => things.change(id, { name: "Saw" });
  // All in one commit, so that their rows have the same version.
  await Promise.all(upTo(4).map((number) => things.add(numbered(number))));
  const query = { limit: 2 };

  const first = await items.list(query, ACCOUNT);
  await things.add(numbered(5));
  assertStrictEquals(await items.list(query, ACCOUNT, first), first);
  await rename(5);
  assertStrictEquals(await items.list(query, ACCOUNT, first), first);
  await things.change(1, null);
  const second = await items.list(query, ACCOUNT, first);
  assertEquals([idsIn(second), second.next], [[2, 3], 3]);
  await rename(3);
  const third = await items.list(query, ACCOUNT, second);
  assertEquals(JSON.parse(third.json).map(({ name }: { name: string }) => name), ["Hammer 2", "Saw"]);
  await things.change(4, null);
  await things.change(5, null);
  assertEquals((await items.list(query, ACCOUNT, third)).next, undefined);
});

/** Fields that a later release stores in things. The numbers must not lose digits. */
const LATER = '"later":["shy",{"since":1.5}],"laterChip":9007199254740993,"__proto__":{"id":0}';

Deno.test("Items reads fields that were added later as their defaults, in the declared order, and keeps unknown ones", async () => {
  using kv = await Deno.openKv(":memory:");
  await kv.set(["items", "things", 1], encodeText(`{"id":1,"weight":7,"name":"Hammer",${LATER}}\na`));
  const things = collectionOn(kv);
  const shown = '{"id":1,"name":"Hammer","weight":7,"state":"new","isSpare":false}';

  assertEquals(await things.items.find(1), { json: shown, ownerId: ACCOUNT });
  assertEquals((await things.items.list({ limit: 9 }, ACCOUNT)).json, `[${shown}]`);
  assertEquals((await things.items.listOwned(9)).map(({ item }) => JSON.stringify(item)), [shown]);
  const changed = await things.change(1, { state: "used" });

  assertEquals(changed, { id: 1, name: "Hammer", weight: 7, state: "used", isSpare: false });
  const text = `{"id":1,"name":"Hammer","weight":7,"state":"used","isSpare":false,${LATER}}\na`;
  assertEquals([...new Set((await rowsOf(kv)).values())], [text]);
  assertEquals(idsIn(await things.items.list({ limit: 9, state: "used", isSpare: false }, ACCOUNT)), [1]);
});
