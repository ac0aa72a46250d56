import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { Operator } from "./commands/operator.ts";

const CREATE = ["keys", "create", "--account", "a", "--plan"];
const COUNT = "must be a whole number from 1 to 1000000000000";

/** Command lines that are not understood, and what is said of them. */
const misunderstood: readonly (readonly [args: readonly string[], says: string])[] = [
  [["keys"], "A command is missing"],
  [["keys", "frobnicate"], "There is no command keys frobnicate"],
  [["keys", "create"], "--account NAME is required"],
  [["keys", "create", "--plan", "free"], "--account NAME is required"],
  [["keys", "create", "--account", "", "--plan", "free"], "--account NAME is required"],
  [["keys", "create", "--account", "a\tb", "--plan", "free"], "--account NAME is required"],
  [["keys", "create", "--account", "a\nb", "--plan", "free"], "--account NAME is required"],
  [["keys", "create", "--account", "a".repeat(101), "--plan", "free"], "--account NAME is required"],
  [["keys", "create", "--account", "a"], "The plan must be one of free, pro, business, enterprise"],
  [[...CREATE, "gold"], "The plan must be one of free, pro, business, enterprise"],
  [[...CREATE, "FREE"], "The plan must be one of free, pro, business, enterprise"],
  [[...CREATE, "enterprise"], "requires --per-minute N and --per-day N"],
  [[...CREATE, "enterprise", "--per-minute", "5"], "requires --per-minute N and --per-day N"],
  [[...CREATE, "enterprise", "--per-day", "5"], "requires --per-minute N and --per-day N"],
  [[...CREATE, "enterprise", "--per-minute", "0", "--per-day", "5"], `--per-minute ${COUNT}`],
  [[...CREATE, "enterprise", "--per-minute", "5", "--per-day", "1.5"], `--per-day ${COUNT}`],
  [[...CREATE, "enterprise", "--per-minute", "5", "--per-day", "1000000000001"], `--per-day ${COUNT}`],
  [[...CREATE, "enterprise", "--per-minute", "1e3", "--per-day", "5"], `--per-minute ${COUNT}`],
  [[...CREATE, "free", "--per-minute", "5"], "the free plan has fixed limits"],
  [[...CREATE, "pro", "--per-day", "5"], "the pro plan has fixed limits"],
  [[...CREATE, "free", "extra"], "takes no argument 'extra'"],
  [[...CREATE], "--plan"],
  [[...CREATE, "free", "--gold"], "--gold"],
  [["keys", "create", "--account", "-x", "--plan", "free"], "--account"],
  [["keys", "list", "extra"], "takes no argument 'extra'"],
  [["keys", "show"], "keys show needs an ID"],
  [["keys", "show", "key_1", "key_2"], "takes no argument 'key_2'"],
  [["keys", "rotate"], "keys rotate needs an ID"],
  [["keys", "rotate", "key_1", "--grace", "soon"], "--grace must be a duration such as 30m, 24h or 7d"],
  [["keys", "rotate", "key_1", "--grace", ""], "--grace must be a duration"],
  [["keys", "rotate", "key_1", "--grace", "5"], "--grace must be a duration"],
  [["keys", "rotate", "key_1", "--grace", "1.5h"], "--grace must be a duration"],
  [["keys", "rotate", "key_1", "--grace", "5w"], "--grace must be a duration"],
  [["keys", "rotate", "key_1", "--grace", "1000000s"], "--grace must be a duration"],
  [["keys", "revoke"], "keys revoke needs an ID"],
  [["keys", "unban"], "keys unban needs an ID"],
  [["keys", "plan"], "keys plan needs an ID and a PLAN"],
  [["keys", "plan", "key_1"], "keys plan needs an ID and a PLAN"],
  [["keys", "plan", "key_1", "gold"], "The plan must be one of free, pro, business, enterprise"],
  [["keys", "plan", "key_1", "enterprise"], "requires --per-minute N and --per-day N"],
  [["keys", "plan", "key_1", "pro", "extra"], "takes no argument 'extra'"],
  [["keys", "show", "as_test_1"], "not the key itself"],
  [["keys", "revoke", "key_1", "--plan", "pro"], "keys revoke takes no --plan"],
  [["messages", "take", "1", "--plan", "free"], "messages take takes no --plan"],
  [["messages"], "messages take N"],
  [["messages", "give", "1"], "messages take N"],
  [["messages", "take"], `N ${COUNT}`],
  [["messages", "take", "0"], `N ${COUNT}`],
  [["messages", "take", "all"], `N ${COUNT}`],
  [["messages", "take", "1", "2"], "messages take N"],
  [["messages", "take", "--all"], "--all"],
];

Deno.test("main() says in one line what it does not understand, and exits with 2", async (t) => {
  await using operator = await Operator.start();
  for (const [args, says] of misunderstood) {
    await t.step(args.map((arg) => JSON.stringify(arg)).join(" "), async () => {
      const code = await operator.run(...args);

      assertEquals(code, 2);
      assertEquals(operator.out, []);
      assertEquals(operator.err.length, 1);
      const [line = ""] = operator.err;
      assertStringIncludes(line, says);
      assertMatch(line, new RegExp(`^[^\n]+\\. See: deno task ${args[0]} --help$`));
    });
  }
  await operator.run("keys", "list");
  assertEquals(operator.out, []);
});

for (const args of [["cats", "list"], ["key", "list"], ["create"], []]) {
  Deno.test(`main() names the commands there are and exits with 2 when it is given '${args.join(" ")}'`, async () => {
    await using operator = await Operator.start();

    const code = await operator.run(...args);

    assertEquals(code, 2);
    assertEquals(operator.out, []);
    assertEquals(operator.err.length, 1);
    assertMatch(operator.err.join(), /^[^\n]*keys[^\n]*messages[^\n]*$/);
  });
}

for (
  const [args, commands] of [
    [["keys", "--help"], ["create", "list", "show", "rotate", "revoke", "plan", "unban"]],
    [["keys", "-h"], ["create", "list"]],
    [["keys", "create", "--help"], ["create", "list"]],
    [["keys", "rotate", "--grace", "soon", "--help"], ["rotate"]],
    [["messages", "--help"], ["take"]],
    [["messages", "take", "-h"], ["take"]],
  ] as const
) {
  Deno.test(`main() prints help and opens no KV when it is given '${args.join(" ")}'`, async () => {
    await using operator = await Operator.start();
    operator.environment.set("PORT", "no port");

    const code = await operator.run(...args);

    assertEquals(code, 0);
    const help = operator.out.join("\n");
    assertStringIncludes(help, `Usage: deno task ${args[0]} `);
    for (const command of commands) assertMatch(help, new RegExp(`\\b${command}\\b`));
    assertEquals(operator.err, []);
    assertEquals(await Array.fromAsync(Deno.readDir(operator.folder)), []);
  });
}

Deno.test("main() exits with 1 and says why when the KV is in a server's memory", async () => {
  await using operator = await Operator.start();
  operator.environment.set("KV_PATH", ":memory:");

  const code = await operator.run("keys", "list");

  assertEquals(code, 1);
  assertEquals(operator.err, ["KV_PATH=:memory: is private to the server; no command reaches it."]);
});

Deno.test("main() exits with 1 and says why when a variable is bad", async () => {
  await using operator = await Operator.start();
  operator.environment.set("ENVIRONMENT", "testing");

  const code = await operator.run("keys", "list");

  assertEquals(code, 1);
  assertEquals(operator.out, []);
  assertEquals(operator.err, ["ENVIRONMENT must be one of production, staging."]);
});

Deno.test("main() exits with 1 and says why when the KV cannot be opened", async () => {
  await using operator = await Operator.start();
  operator.environment.set("KV_PATH", operator.folder);

  const code = await operator.run("keys", "list");

  assertEquals(code, 1);
  assertEquals(operator.out, []);
  assertEquals(operator.err.length, 1);
  assertStringIncludes(operator.err.join(), operator.folder);
});

Deno.test("main() leaves nothing in the KV but what it was told to store", async () => {
  await using operator = await Operator.start();
  const { id } = await operator.createKey();
  for (const command of [["rotate", id], ["plan", id, "pro"], ["unban", id], ["revoke", id], ["list"]]) {
    assertEquals(await operator.run("keys", ...command), 0);
  }
  assertEquals(await operator.run("messages", "take", "5"), 0);

  using service = await operator.serve();
  const rows = await Array.fromAsync(service.kv.list({ prefix: [] }));

  assertEquals(rows.map(({ key: [name] }) => name), ["api_keys", "api_keys", "keys", "usage"]);
});

Deno.test("main() works on the file of a service that is running and busy", async () => {
  await using operator = await Operator.start();
  using service = await operator.serve();
  const { secret: key } = await service.issueKey("business");
  let busy = true;
  const work = async () => {
    const statuses = new Set<number>();
    while (busy) {
      const json = { name: "Rex", categoryId: 1 };
      statuses.add((await service.fetch("POST /v1/pets", { key, json })).status);
      service.now += 100;
    }
    return statuses;
  };
  const working = [work(), work()];

  for (let count = 0; count < 10; count++) {
    assertEquals(await operator.run("keys", "create", "--account", `${count}`, "--plan", "free"), 0);
  }
  busy = false;

  for (const statuses of await Promise.all(working)) assertEquals(statuses, new Set([201]));
  await operator.run("keys", "list");
  assertEquals(operator.out.length, 11);
  assert(operator.out.every((line) => line.endsWith("active")));
});
