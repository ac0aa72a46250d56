import { assertEquals } from "@std/assert";
import { keyRow, readKeyRows, usageRow } from "../../src/access/key_rows.ts";
import { UNUSED } from "../../src/access/usage.ts";
import { Harness } from "../harness.ts";

Deno.test("readKeyRows() reads keys in the order of their ids, undefined where there is none", async () => {
  using service = await Harness.open();
  const keys = await Promise.all(Array.from({ length: 7 }, () => service.issueKey()));
  const ids = keys.map(({ key: { id } }) => id);

  const rows = await readKeyRows(service.store, ["key_x", ...ids]);

  assertEquals(rows.map((row) => row?.key.value.id), [undefined, ...ids]);
  assertEquals(rows.map((row) => row?.usage.key), [undefined, ...ids.map(usageRow)]);
  assertEquals(rows.map((row) => row?.usage.value), [undefined, ...ids.map(() => UNUSED)]);
});

Deno.test("readKeyRows() reads usage rows that hold objects, with the day that they once had", async () => {
  using service = await Harness.open();
  const { key } = await service.issueKey();
  const usage = { ...UNUSED, minute: 60_000, minuteUsed: 3, dayUsed: 5 };
  await service.kv.set(usageRow(key.id), { ...usage, day: 0 });

  const [rows] = await readKeyRows(service.store, [key.id]);

  assertEquals(rows?.key.key, keyRow(key.id));
  assertEquals<unknown>(rows?.usage.value, { ...usage, day: 0 });
});
