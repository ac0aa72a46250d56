import { assertEquals, assertRejects } from "@std/assert";
import { encodeJson } from "../../src/engine/row.ts";
import type { Decided, Transaction, Write } from "../../src/engine/transaction.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { upTo } from "../support/client.ts";
import { Store } from "../../src/engine/store.ts";
import { onFile } from "../support/fake_kv.ts";

const ROW = ["row"];
const FAULTS: readonly (readonly [string, (write: Write) => Decided, Deno.KvKey?])[] = [
  ["sets a value over 64 KiB", (write) => write.set(ROW, new Uint8Array(65_537))],
  ["sets a value that is neither bytes nor a count", (write) => write.set(ROW, "text" as never)],
  ["sets a row with a key over 2 KiB", (write) => write.set(["row", "\0".repeat(1_100)], encodeJson(1))],
  ["deletes a row with a part that no key has", (write) => write.delete(["row", null as never])],
  ["sets a row with an empty key", (write) => write.set([], encodeJson(1))],
  ["reads a row with a key over 2 KiB", () => null, ["row", "x".repeat(2_048)]],
  // @ts-expect-error By type, it cannot.
  ["decides later", async (write) => write.set(ROW, await Promise.resolve(encodeJson(1)))],
];

/** Carries out transactions on a KV. */
function transactionsOn(kv: Deno.Kv): Transactions {
  const clock = () => 0;
  return new Transactions(new Store(onFile(kv, { clock })), { clock });
}

for (const [what, decide, key = ROW] of FAULTS) {
  Deno.test(`Transactions.run() rejects one of 41 transactions alone if it ${what}`, async () => {
    using kv = await Deno.openKv(":memory:");
    const transactions = transactionsOn(kv);
    const good = (number: number): Transaction<number> => ({
      reads: [["counts", number]],
      decide: (_, write) => (write.set(["counts", number], encodeJson(1)), number),
    });

    const running = upTo(40).map((number) => transactions.run(good(number)));
    const faulty = transactions.run({ reads: [key], decide: (_, write) => decide(write) });

    await assertRejects(() => faulty, what.includes("over") ? RangeError : TypeError);
    assertEquals((await Promise.all(running)).map(({ result }) => result), upTo(40));
    const rows = await Array.fromAsync(kv.list({ prefix: ["counts"] }));
    assertEquals([rows.length, (await kv.get(ROW)).versionstamp], [40, null]);
  });
}

Deno.test("Transactions.run() stores a value of 64 KiB", async () => {
  using kv = await Deno.openKv(":memory:");
  const transactions = transactionsOn(kv);
  const value = new Uint8Array(65_536);

  await transactions.run({ decide: (_, write) => write.set(ROW, value) });

  assertEquals((await kv.get(ROW)).value, value);
});
