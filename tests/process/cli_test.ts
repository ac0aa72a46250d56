import { assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { call } from "../support/client.ts";
import { Operator } from "../support/operator.ts";
import { HAMMER } from "../support/things.ts";

Deno.test("main() prints help even if a variable is invalid", async () => {
  await using operator = await Operator.start();
  operator.environment.set("PORT", "no port");

  for (const command of ["accounts --help", "items -h"]) {
    assertEquals([await operator.run(command), operator.err], [0, []]);
    assertStringIncludes(operator.out.join(), "Usage: deno task ");
  }
});

Deno.test.each([
  [
    "KV_PATH",
    ":memory:",
    /^Commands cannot use KV_PATH=:memory:, because only the server has access to it\.$/,
  ],
  ["KV_PATH", "FOLDER", /^The KV FOLDER cannot be used: [^\n]+\.$/],
  ["KV_PATH", "FOLDER/a/b.kv", /^The KV FOLDER\/a\/b\.kv cannot be used: there is no such file, [^\n]+\.$/],
  ["ENVIRONMENT", "testing", /^ENVIRONMENT must be one of production, staging\.$/],
])("main() exits with 1, prints why, and creates nothing if %s is %s", async (name, value, message) => {
  await using operator = await Operator.start();
  operator.environment.set(name, value.replace("FOLDER", operator.folder));

  const code = await operator.run("accounts create tests");

  assertEquals([code, operator.out], [1, []]);
  assertMatch(operator.err.join("\n").replaceAll(operator.folder, "FOLDER"), message);
  const names = (await Array.fromAsync(Deno.readDir(operator.folder))).map((entry) => entry.name);
  assertEquals(names, ["data"]);
});

Deno.test("main() works on the KV file of a running, busy service", async () => {
  await using operator = await Operator.start();
  await using service = await operator.serve();
  const { apiKey: key } = await service.createAccount();
  const statuses = new Set<number>();
  let isBusy = true;
  const work = async () => {
    while (isBusy) {
      statuses.add((await call(service, key, "POST /v1/things", { json: HAMMER })).status);
      service.now += 100;
    }
  };
  const working = [work(), work()];

  const codes: number[] = [];
  for (let count = 0; count < 8; count++) codes.push(await operator.run("accounts create tests"));
  isBusy = false;
  await Promise.all(working);

  assertEquals(codes, new Array(8).fill(0));
  assertEquals(statuses, new Set([201]));
  await operator.run("accounts list");
  assertEquals(operator.out.length, 9);
});
