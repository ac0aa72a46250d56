import { assertEquals } from "@std/assert";
import { Operator } from "../support/operator.ts";
import { assertConsistent, storeName } from "../support/stored_rows.ts";

/** An operator whose KV has an account with Rex, Tom and Kim, all available, of category 2^53 + 1. */
async function withPets(): Promise<{ operator: Operator; id: string; key: string }> {
  const operator = await Operator.start();
  const account = await operator.createAccount();
  await using service = await operator.serve();
  for (const name of ["Rex", "Tom", "Kim"]) {
    const body = `{"name":"${name}","categoryId":9007199254740993}`;
    const headers = { "content-type": "application/json" };
    await service.fetch("POST /v1/pets", { key: account.key, body, headers });
  }
  return { operator, ...account };
}

Deno.test("items pets list prints every animal and the account that added it", async () => {
  const { operator, id } = await withPets();
  await using _ = operator;

  const codes = [await operator.run("items pets list")];
  const [list, heading] = [operator.out, operator.err];
  codes.push(await operator.run("items pets list --json"));

  assertEquals(codes, [0, 0]);
  assertEquals(heading, ["id\tname\tcategoryId\tstatus\taccountId"]);
  assertEquals(
    list,
    ["Rex", "Tom", "Kim"].map((name, n) => `${n + 1}\t${name}\t9007199254740993\tavailable\t${id}`),
  );
  const rex = `{"id":1,"name":"Rex","categoryId":9007199254740993,"status":"available","accountId":"${id}"}`;
  assertEquals(operator.out[0], rex);
  assertEquals([operator.out.length, operator.err], [3, []]);
});

Deno.test("items pets COMMAND replaces control characters in names, or escapes them in JSON", async () => {
  const { operator } = await withPets();
  await using _ = operator;
  const name = "T\u001b[2J\n9\tforged\u009b2J\u202e\u061c";
  await using service = await operator.serve();
  await storeName(service.kv, 2, name);

  assertEquals(await operator.run("items pets list"), 0);
  assertEquals(operator.out[1]?.split("\t")[1], "T\ufffd[2J\ufffd9\ufffdforged\ufffd2J\ufffd\ufffd");
  for (const [command, line] of [["list --json", 1], ["set 2 --status sold", 0]] as const) {
    assertEquals(await operator.run(`items pets ${command}`), 0);
    const text = operator.out[line] ?? "";
    assertEquals(/[\p{Cc}\p{Bidi_Control}]/u.test(text), false);
    assertEquals(JSON.parse(text).name, name);
  }
});

Deno.test("items pets set changes any animal but not its owner, and items pets delete removes any animal", async () => {
  const { operator, key } = await withPets();
  await using _ = operator;
  await using service = await operator.serve();
  const list = async (query = "") => await (await service.fetch(`GET /v1/pets${query}`, { key })).text();
  const [rex, tom, kim] = JSON.parse(await list()).map((pet: unknown) => JSON.stringify(pet));

  const set = await operator.run(
    "items pets set 2 --status sold --category-id 9223372036854775807 --name",
    "Tom Tom",
  );
  const printed = [operator.out, operator.err];
  const sold = await list("?status=sold");
  const removed = await operator.run("items pets delete 1");

  const changed = '{"id":2,"name":"Tom Tom","categoryId":9223372036854775807,"status":"sold"}';
  assertEquals([set, removed], [0, 0]);
  assertEquals(printed, [[changed], []]);
  assertEquals([operator.out, operator.err], [[], ["Deleted: animal 1."]]);
  assertEquals(sold, `[${changed}]`);
  assertEquals(JSON.parse(await list("?status=available")).length, 1);
  assertEquals([typeof rex, typeof tom, typeof kim], ["string", "string", "string"]);
  assertEquals((await service.fetch("DELETE /v1/pets/2", { key })).status, 204);
  await assertConsistent(service.kv);
});

Deno.test.each(["set 9 --status sold", "delete 9"])(
  "items pets %s exits with 1 if the animal does not exist",
  async (command) => {
    const { operator } = await withPets();
    await using _ = operator;

    const code = await operator.run(`items pets ${command}`);

    assertEquals([code, operator.out, operator.err], [1, [], ["There is no animal with the id 9."]]);
  },
);

Deno.test("items pets COMMAND changes and removes animals whose stored names are now invalid", async () => {
  const { operator } = await withPets();
  await using _ = operator;
  await using service = await operator.serve();
  for (const [id, name] of [[1, " "], [2, "\u0000"], [3, "\n"]] as const) {
    await storeName(service.kv, id, name);
  }

  const set = await operator.run("items pets set 1 --status sold");
  const changed = operator.out;
  const renamed = [await operator.run("items pets set 2 --name Tom"), operator.out];
  const refused = await operator.run("items pets set 3 --name", "\n");
  const removed = await operator.run("items pets delete 3");

  assertEquals([set, changed], [0, ['{"id":1,"name":" ","categoryId":9007199254740993,"status":"sold"}']]);
  assertEquals(renamed, [0, ['{"id":2,"name":"Tom","categoryId":9007199254740993,"status":"available"}']]);
  assertEquals([refused, removed], [2, 0]);
  await assertConsistent(service.kv);
});
