import { assert, assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import { CorruptRow, decodeJson, decodeText, encodeText } from "../../src/engine/row.ts";
import { Harness } from "../support/harness.ts";

const row = (value: unknown) => ({ key: ["numbers", 1], value, versionstamp: "1" });

Deno.test("decodeText() reverses encodeText()", () => {
  assertEquals(decodeText(row(encodeText("é\n{"))), "é\n{");
});

Deno.test.each([
  ["an object", { a: 1 }, "text"],
  ["invalid UTF-8", new Uint8Array([0x22, 0xff, 0x22]), "text"],
  ["invalid JSON", encodeText("{"), "JSON"],
])("decodeJson() names the table of a row that holds %s", (_, value, message) => {
  assertThrows(() => decodeJson(row(value)), CorruptRow, `A row of numbers is not ${message}`);
});

Deno.test("service stores only bytes and counts", async () => {
  await using service = await Harness.open();
  const { account, apiKey: key } = await service.createAccount();
  const json = { name: "Hammer", weight: 7, message: "Is Hammer still there?" };
  for (const target of ["POST /v1/things", "POST /v1/messages"]) {
    for (const headers of [{}, { "idempotency-key": "once" }]) {
      const response = await service.fetch(target, { key, json, headers });
      await response.body?.cancel();
    }
  }
  await service.accounts.rotate(account.id, 1_000, service.now);

  const rows = await Array.fromAsync(service.kv.list({ prefix: [] }));

  assertNotEquals(rows, []);
  for (const { value } of rows) assert(value instanceof Uint8Array || value instanceof Deno.KvU64);
});
