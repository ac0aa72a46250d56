import { assertEquals, assertRejects } from "@std/assert";
import { FakeKv } from "./fake_kv.ts";
import { Harness } from "./harness.ts";

Deno.test.each([false, true])(
  "stop() throws if the store has failed, unless errors are expected: %s",
  async (expectsErrors) => {
    using kv = await Deno.openKv(":memory:");
    const service = new Harness(kv);
    service.expectsErrors = expectsErrors;
    kv.getMany = () => Promise.reject(new TypeError("no such key"));

    const { status } = await service.fetch("GET /ready");

    assertEquals(status, 503);
    if (expectsErrors) await service.stop();
    else {await assertRejects(
        () => service.stop(),
        Error,
        '"route":"/ready","error":"StoreUnavailable (TypeError)"',
      );}
  },
);

Deno.test("a SuppressedError has the failure of the test as its cause", async () => {
  const failure = new Error("of the test");
  const run = async () => {
    await using service = await Harness.open();
    service.errors.push({ time: "", id: "", route: "", error: "of the harness", at: "" });
    throw failure;
  };

  assertEquals((await assertRejects(run, SuppressedError)).cause, failure);
});

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
