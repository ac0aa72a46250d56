import { assert, assertEquals, assertLess, assertRejects, assertStrictEquals } from "@std/assert";
import { Connection } from "../../src/engine/connection.ts";
import { CorruptRow } from "../../src/engine/row.ts";
import { Store } from "../../src/engine/store.ts";
import type { NewPet, Pet } from "../../src/pets/pet.ts";
import {
  CATALOGUE_VERSION,
  type OwnedPet,
  type OwnedPetPage,
  type PetPage,
  PetStore,
} from "../../src/pets/pet_store.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { type Disturbance, disturbed } from "../support/fake_kv.ts";
import { assertConsistent } from "../support/stored_rows.ts";

/** The catalogue as one process sees and changes it. */
class Catalogue {
  readonly pets: PetStore;
  readonly #transactions: Transactions;

  constructor(kv: Deno.Kv, disturbance: Disturbance) {
    const connection = new Connection([disturbed(kv, disturbance)]);
    const store = new Store(connection, { maxChecks: 100, clock: () => 0 });
    this.#transactions = new Transactions(store, { clock: () => 0 });
    this.pets = new PetStore(store, this.#transactions, { key: CATALOGUE_VERSION, version: "" });
  }

  async create(newPet: NewPet, ownerId: string): Promise<Pet> {
    const pet = { id: await this.pets.ids.next(), ...newPet };
    return (await this.#transactions.run(this.pets.adding(pet, ownerId))).result;
  }

  async change(id: number, decide: (owned: OwnedPet | null) => Pet | null): Promise<Pet | null> {
    return (await this.#transactions.run(this.pets.changing(id, decide))).result?.pet ?? null;
  }

  find(id: number): Promise<string | null> {
    return this.pets.find(id);
  }

  listOwned(limit: number, cursor?: number): Promise<OwnedPetPage> {
    return this.pets.listOwned(limit, cursor);
  }
}

function catalogueOn(kv: Deno.Kv, disturbance: Disturbance = {}): Catalogue {
  return new Catalogue(kv, disturbance);
}

function upTo(end: number): number[] {
  return Array.from({ length: end }, (_, index) => index + 1);
}

function named(number: number): NewPet {
  return { name: `Rex ${number}`, categoryId: 7, status: "sold" };
}

/** Returns a decision that changes an existing animal. */
function patched(change: Partial<NewPet>): (owned: OwnedPet | null) => Pet | null {
  return (owned) => owned && { ...owned.pet, ...change };
}

Deno.test("create() assigns ids in call order to hundreds of simultaneous calls, in a few commits", async () => {
  using kv = await Deno.openKv(":memory:");
  let commits = 0;
  const pets = catalogueOn(kv, { commit: ({ apply }) => (commits++, apply()) });

  const created = await Promise.all(upTo(350).map((number) => pets.create(named(number), "a")));

  assertEquals(created, upTo(350).map((id) => ({ id, ...named(id) })));
  assertLess(commits, 10);
});

Deno.test("find() reads once for simultaneous calls", async () => {
  using kv = await Deno.openKv(":memory:");
  let reads = 0;
  const pets = catalogueOn(kv, { read: () => void reads++ });
  await Promise.all([pets.create(named(1), "a"), pets.create(named(2), "a")]);
  reads = 0;

  const found = await Promise.all([1, 2, 1, 2, 9].map((id) => pets.find(id)));

  assertEquals(reads, 1);
  assertEquals(found.map((json) => json && JSON.parse(json).id), [1, 2, 1, 2, null]);
});

Deno.test("listOwned() returns animals with their owners, and the last ID if there may be more", async () => {
  using kv = await Deno.openKv(":memory:");
  const pets = catalogueOn(kv);
  await Promise.all(upTo(5).map((number) => pets.create(named(number), `${number}`)));
  const owned = upTo(5).map((id) => ({ pet: { id, ...named(id) }, ownerId: `${id}` }));

  assertEquals(await pets.listOwned(3), { pets: owned.slice(0, 3), next: 3 });
  assertEquals(await pets.listOwned(3, 3), { pets: owned.slice(3), next: undefined });
});

Deno.test.each([
  "[]",
  "{",
  '{"id":1,"name":null,"categoryId":1,"status":"sold"}',
  '{"id":1,"name":"Rex","categoryId":"1","status":"sold"}',
  '{"id":1,"name":"Rex","categoryId":1,"status":"lost"}',
])(
  "change() rejects a row that is not an animal: %s",
  async (json) => {
    using kv = await Deno.openKv(":memory:");
    await kv.set(["pets", 1], new TextEncoder().encode(`${json}\na`));

    await assertRejects(
      () => catalogueOn(kv).change(1, () => null),
      CorruptRow,
      "A row of pets is not an animal",
    );
  },
);

Deno.test("assertConsistent() detects every missing or contradictory row", async () => {
  using kv = await Deno.openKv(":memory:");
  await catalogueOn(kv).create(named(1), "a");
  await kv.set(["accounts", "a"], new TextEncoder().encode('{"keyHash":"h"}'));
  await kv.set(["api_keys", "h"], new TextEncoder().encode('"a"'));
  await kv.set(["usage", "a"], new TextEncoder().encode("[]"));
  await assertConsistent(kv);

  for await (const { key, value } of kv.list({ prefix: [] })) {
    if (["catalogue", "commits", "ids"].includes(String(key[0]))) continue;
    await kv.delete(key);
    await assertRejects(() => assertConsistent(kv), Error, "Values are not equal");
    await kv.set(key, value);
  }
  const status = await kv.get(["pets_by_status", "sold", 1]);
  assert(status.versionstamp !== null);
  await kv.set(["pets_by_status", "pending", 1], status.value);
  await assertRejects(() => assertConsistent(kv), Error, "pets_by_status/pending/1 has another status");
});

Deno.test("PetStore.list() returns an earlier page exactly if none of its rows has changed", async () => {
  using kv = await Deno.openKv(":memory:");
  const catalogue = catalogueOn(kv);
  const { pets } = catalogue;
  // All of one commit, so that their rows have the same version.
  await Promise.all(upTo(4).map((number) => catalogue.create(named(number), "a")));
  const query = { limit: 2 };
  const ids = (page: PetPage) => page.pets.map((json) => JSON.parse(json).id);

  const first = await pets.list(query);
  await catalogue.create(named(5), "a");
  assertStrictEquals(await pets.list(query, first), first);
  await catalogue.change(5, patched({ name: "Ada" }));
  assertStrictEquals(await pets.list(query, first), first);
  await catalogue.change(1, () => null);
  const second = await pets.list(query, first);
  assertEquals([ids(second), second.next], [[2, 3], 3]);
  await catalogue.change(3, patched({ name: "Ada" }));
  const third = await pets.list(query, second);
  assertEquals(third.pets.map((json) => JSON.parse(json).name), ["Rex 2", "Ada"]);
  await catalogue.change(4, () => null);
  await catalogue.change(5, () => null);
  assertEquals((await pets.list(query, third)).next, undefined);
});
