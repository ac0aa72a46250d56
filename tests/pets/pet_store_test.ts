import { assertEquals } from "@std/assert";
import { Store } from "../../src/kv/store.ts";
import { type NewPet, type PetStatus, toJson } from "../../src/pets/pet.ts";
import { PetStore } from "../../src/pets/pet_store.ts";
import { Harness } from "../harness.ts";
import { petsOf } from "./catalogue.ts";

Deno.test("create() gives hundreds at once unique ids, in the order of the calls", async () => {
  using store = await openStore();
  const pets = new PetStore(store);

  const created = await Promise.all(Array.from({ length: 350 }, (_, index) => pets.create(named(index))));

  assertEquals(
    created.map((pet) => [pet?.id, pet?.name]),
    Array.from({ length: 350 }, (_, index) => [index + 1, `Rex ${index}`]),
  );
  assertEquals((await pets.head(Infinity)).lastId, 350);
});

Deno.test("createPet() gives unique ids when two processes create at once", async () => {
  using here = await Harness.open();
  const elsewhere = new Harness(here.kv);
  const { secret: key } = await here.issueKey();

  const responses = await Promise.all(
    Array.from({ length: 120 }, (_, index) =>
      (index % 2 ? here : elsewhere).fetch("POST /v1/pets", {
        key,
        json: { name: `Rex ${index}`, categoryId: index },
      })),
  );

  const created = await Promise.all(responses.map((response) => response.json()));
  assertEquals(responses.map(({ status }) => status), new Array(120).fill(201));
  assertEquals(created.map(({ name }) => name), Array.from({ length: 120 }, (_, index) => `Rex ${index}`));
  const ascending = created.sort((a, b) => a.id - b.id);
  assertEquals(ascending.map(({ id }) => id), Array.from({ length: 120 }, (_, index) => index + 1));
  const first = await petsOf(await here.fetch("GET /v1/pets?limit=100", { key }));
  assertEquals<unknown>(first, ascending.slice(0, 100));
});

Deno.test("create() continues after what another process has created in between", async () => {
  using store = await openStore();
  const here = new PetStore(store);
  const elsewhere = new PetStore(store);

  const ids: unknown[] = [];
  for (const pets of [here, elsewhere, here, here, elsewhere, elsewhere, here]) {
    ids.push((await pets.create(named(1)))?.id);
  }

  assertEquals(ids, [1, 2, 3, 4, 5, 6, 7]);
});

Deno.test("create() continues after the highest id when the store is opened again", async () => {
  using store = await openStore();
  const before = new PetStore(store);
  await Promise.all([before.create(named(1)), before.create(named(2))]);

  assertEquals((await new PetStore(store).create(named(3)))?.id, 3);
});

Deno.test("find() finds an animal by its id only, and one that is added after it was missed", async () => {
  using store = await openStore();
  const pets = new PetStore(store);
  await pets.create(named(1));

  assertEquals((await pets.find(1))?.json, toJson({ id: 1, ...named(1) }));
  assertEquals(await pets.find(2), undefined);
  await pets.create(named(2));
  assertEquals((await pets.find(2))?.json, toJson({ id: 2, ...named(2) }));
});

Deno.test("find() reads an animal once, for it never changes", async () => {
  using kv = await Deno.openKv(":memory:");
  const pets = new PetStore(new Store(kv, { maxChecks: 10 }));
  await pets.create(named(1));
  await pets.create(named(2));
  const { get } = kv;
  let reads = 0;
  kv.get = <T>(key: Deno.KvKey) => {
    reads++;
    return get.call<Deno.Kv, [Deno.KvKey], Promise<Deno.KvEntryMaybe<T>>>(kv, key);
  };

  const found: unknown[] = [];
  for (const id of [1, 2, 1, 2]) found.push((await pets.find(id))?.json);

  assertEquals(found, [1, 2, 1, 2].map((id) => toJson({ id, ...named(id) })));
  assertEquals(reads, 2);
});

Deno.test.each<PetStatus | undefined>([undefined, "sold"])(
  "list() by status %s leaves out what was added after the head",
  async (status) => {
    using store = await openStore();
    const pets = new PetStore(store);
    await Promise.all([pets.create(named(1)), pets.create(named(2))]);
    const head = await pets.head(Infinity);
    await pets.create(named(3));

    const { pets: listed, next } = await pets.list({ limit: 2, status, after: 0 }, head);

    assertEquals(listed, [1, 2].map((id) => toJson({ id, ...named(id) })));
    assertEquals(next, undefined);
  },
);

Deno.test("find() and list() read rows that hold objects", async () => {
  using kv = await Deno.openKv(":memory:");
  const pets = new PetStore(new Store(kv, { maxChecks: 10 }));
  const rows = [1, 2].map((id) => ({ id, ...named(id) }));
  for (const row of rows) {
    await kv.atomic().set(["pets", row.id], row).set(["pets_by_status", "sold", row.id], row).commit();
  }
  await kv.set(["catalogue"], { lastId: 2 });
  const added = await pets.create(named(3));
  const all = [...rows, { id: 3, ...named(3) }].map(toJson);

  const head = await pets.head(Infinity);

  assertEquals(added?.id, 3);
  assertEquals((await pets.find(1))?.json, all[0]);
  assertEquals((await pets.list({ limit: 9, status: undefined, after: 0 }, head)).pets, all);
  assertEquals(await pets.list({ limit: 2, status: "sold", after: 0 }, head), {
    pets: all.slice(0, 2),
    next: 2,
  });
});

async function openStore(): Promise<Store> {
  return new Store(await Deno.openKv(":memory:"), { maxChecks: 10 });
}

function named(number: number): NewPet {
  return { name: `Rex ${number}`, categoryId: BigInt(number), status: "sold" };
}
