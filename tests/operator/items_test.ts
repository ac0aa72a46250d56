import { assertEquals, assertStringIncludes } from "@std/assert";
import { encodeJson } from "../../src/engine/mod.ts";
import { itemCommands } from "../../src/operator/item_commands.ts";
import { resource } from "../../src/resource/mod.ts";
import { integer, type Members, optional } from "../../src/web/schema.ts";
import { Operator } from "../support/operator.ts";
import { THING_DECLARATION } from "../support/things.ts";
import { assertConsistent, storeName } from "../support/stored_rows.ts";

/** An operator whose KV has an account with Hammer, Tom and Kim, all new, of 2^53 + 1 g. */
async function withThings(): Promise<{ operator: Operator; id: string; key: string }> {
  const operator = await Operator.start();
  const account = await operator.createAccount();
  await using service = await operator.serve();
  for (const name of ["Hammer", "Tom", "Kim"]) {
    const body = `{"name":"${name}","weight":9007199254740993}`;
    const headers = { "content-type": "application/json" };
    await service.fetch("POST /v1/things", { key: account.key, body, headers });
  }
  return { operator, ...account };
}

Deno.test("items things list prints every thing and the account that added it", async () => {
  const { operator, id } = await withThings();
  await using _ = operator;

  const codes = [await operator.run("items things list")];
  const [list, heading] = [operator.out, operator.err];
  codes.push(await operator.run("items things list --json"));

  assertEquals(codes, [0, 0]);
  assertEquals(heading, ["id\tname\tweight\tstate\tisSpare\tlabels\taccountId"]);
  assertEquals(
    list,
    ["Hammer", "Tom", "Kim"].map((name, n) => `${n + 1}\t${name}\t9007199254740993\tnew\tno\t-\t${id}`),
  );
  const hammer =
    `{"id":1,"name":"Hammer","weight":9007199254740993,"state":"new","isSpare":false,"accountId":"${id}"}`;
  assertEquals(operator.out[0], hammer);
  assertEquals([operator.out.length, operator.err], [3, []]);
});

Deno.test("items things COMMAND replaces control characters in names, or escapes them in JSON", async () => {
  const { operator } = await withThings();
  await using _ = operator;
  const name = "T\u001b[2J\n9\tforged\u009b2J\u202e\u061c";
  await using service = await operator.serve();
  await storeName(service.kv, 2, name);

  assertEquals(await operator.run("items things list"), 0);
  assertEquals(operator.out[1]?.split("\t")[1], "T\ufffd[2J\ufffd9\ufffdforged\ufffd2J\ufffd\ufffd");
  for (const [command, line] of [["list --json", 1], ["set 2 --state lost", 0]] as const) {
    assertEquals(await operator.run(`items things ${command}`), 0);
    const text = operator.out[line] ?? "";
    assertEquals(/[\p{Cc}\p{Bidi_Control}]/u.test(text), false);
    assertEquals(JSON.parse(text).name, name);
  }
});

Deno.test("items things set changes any thing but not its owner, and items things delete removes any thing", async () => {
  const { operator, key } = await withThings();
  await using _ = operator;
  await using service = await operator.serve();
  const list = async (query = "") => await (await service.fetch(`GET /v1/things${query}`, { key })).text();

  const set = await operator.run(
    "items things set 2 --state lost --weight 9223372036854775807 --name",
    "Tom Tom",
  );
  const printed = [operator.out, operator.err];
  const lost = await list("?state=lost");
  const removed = await operator.run("items things delete 1");

  const changed = '{"id":2,"name":"Tom Tom","weight":9223372036854775807,"state":"lost","isSpare":false}';
  assertEquals([set, removed], [0, 0]);
  assertEquals(printed, [[changed], []]);
  assertEquals([operator.out, operator.err], [[], ["Deleted: thing 1."]]);
  assertEquals(lost, `[${changed}]`);
  assertEquals(JSON.parse(await list("?state=new")).length, 1);
  assertEquals((await service.fetch("DELETE /v1/things/2", { key })).status, 204);
  await assertConsistent(service.kv);
  for (const command of ["set 9 --state lost", "delete 9"]) {
    assertEquals([await operator.run(`items things ${command}`), operator.out], [1, []]);
    assertEquals(operator.err, ["There is no thing with the id 9."]);
  }
});

Deno.test("items things add adds a thing for an account or for none, and repeats nothing", async () => {
  const { operator, id } = await withThings();
  await using _ = operator;
  const once = `items things add --name Saw --weight=-3 --account-id ${id} --idempotency-key once`;

  assertEquals(await operator.run("items things add --name Saw --weight=-3"), 0);
  assertEquals(operator.out, ['{"id":4,"name":"Saw","weight":-3,"state":"new","isSpare":false}']);
  for (const _ of ["first", "again"]) {
    assertEquals(await operator.run(once), 0);
    assertEquals(JSON.parse(operator.out.join()), {
      ...{ id: 5, name: "Saw", weight: -3, state: "new", isSpare: false, accountId: id },
    });
  }
  assertEquals(await operator.run("items things add --name Saw --weight 3 --account-id acct_9"), 1);
  assertEquals(operator.err, ["There is no open account with the id acct_9."]);
  assertEquals(await operator.run("items things add --name Saw"), 2);
  assertEquals(operator.err.join().startsWith("--weight is required"), true);
});

Deno.test("itemCommands() explains negative numbers only if a field can have one", () => {
  const helpWith = (fields: Members) => {
    const declaration = { ...THING_DECLARATION, name: "cups", item: "Cup", noun: ["a cup", "cups"] } as const;
    const cups = resource({ ...declaration, fields, filters: [], examples: { item: {}, change: {} } });
    return itemCommands({ title: "Cup Store", resources: [cups] }).commands["cups set"]?.help;
  };
  const fields = { price: optional(integer(0, 9)) };

  assertEquals(helpWith(fields), "update a cup of any account");
  assertEquals(
    helpWith({ ...fields, heatLoss: optional(integer(-9, 9)) }),
    "update a cup of any account; if N is negative, write --heat-loss=-5",
  );
});

Deno.test("items rebuild works on the store itself, whatever it remembers, but not over HTTP", async () => {
  await using operator = await Operator.start();
  const { environment } = operator;
  using kv = await Deno.openKv(environment.get("KV_PATH"));
  await kv.set(["resources", "things"], encodeJson({ filters: ["isSpare"] }));

  assertEquals([await operator.run("items things list"), operator.out], [1, []]);
  assertStringIncludes(operator.err.join(), "run: deno task items things rebuild");
  assertEquals(await operator.run("items things rebuild"), 0);
  assertEquals(operator.err, ["Rebuilt things: 0 items. Now start the release that declares them so."]);
  assertEquals(await operator.run("items things list"), 0);

  environment.set("SERVICE_URL", "http://localhost:1").set(
    "OPERATOR_TOKEN",
    "the-operators-token-in-the-tests",
  );
  assertEquals(await operator.run("items things rebuild"), 1);
  assertEquals(operator.err, ["This command needs the store itself. Unset SERVICE_URL, and set KV_PATH."]);
});
