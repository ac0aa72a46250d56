import { assertEquals } from "@std/assert";
import { call, outcome } from "../support/client.ts";
import { runCommand, ServerProcess } from "../support/process.ts";
import { inOneDay, TemporaryStore } from "../support/temporary_store.ts";

Deno.test("servers notice a command at an account's next request, even if they refuse the account from memory", () =>
  inOneDay(async () => {
    await using store = await TemporaryStore.create();
    await using one = await store.serve();
    await using other = await store.serve();
    const { id, key } = await store.createAccount({ perDay: 1 });
    const outcomes = async () => [outcome(await call(one, key)), outcome(await call(other, key))];
    assertEquals(await outcomes(), ["200", "429 rate_limit_day"]);
    assertEquals(await outcomes(), ["429 rate_limit_day", "429 rate_limit_day"]);

    const { code } = await store.run("accounts", "plan", id, "business");

    assertEquals(code, 0);
    assertEquals(await outcomes(), ["200", "200"]);
  }));

Deno.test("commands run in the service at SERVICE_URL, but only with its OPERATOR_TOKEN", async () => {
  const OPERATOR_TOKEN = "a-token-that-nobody-else-can-know";
  await using server = await ServerProcess.start({ KV_PATH: ":memory:", OPERATOR_TOKEN });
  const run = (token: string, ...args: string[]) =>
    runCommand(args, { SERVICE_URL: server.origin, OPERATOR_TOKEN: token, KV_PATH: "/nowhere" });

  const created = await run(OPERATOR_TOKEN, "accounts", "create", "me");
  const refused = await run(OPERATOR_TOKEN.toUpperCase(), "accounts", "list");

  assertEquals(outcome(await call(server, created.stdout.trim())), "200");
  assertEquals([created.code, refused.code, refused.stdout], [0, 1, ""]);
  assertEquals(refused.errorLines, ["OPERATOR_TOKEN is not this service's token."]);
});
