import { assertEquals } from "@std/assert";
import { FakeKv } from "./fake_kv.ts";

const KEYS: Deno.KvKey[] = [["n", 1], ["n", 1n], ["n", "1"], ["n", "1n"], ["n", true], [
  "n",
  new Uint8Array([1]),
]];

Deno.test("FakeKv stores a row for each key that Deno KV distinguishes", async () => {
  using real = await Deno.openKv(":memory:");
  const fake = new FakeKv().connect();
  for (const kv of [real, fake]) {
    for (const [index, key] of KEYS.entries()) await kv.atomic().set(key, index).commit();

    const values = (await Promise.all(KEYS.map((key) => kv.get(key)))).map(({ value }) => value);

    assertEquals(values, [...KEYS.keys()]);
  }
});
