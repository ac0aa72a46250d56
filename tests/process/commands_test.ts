import { assertEquals } from "@std/assert";
import { call, outcome } from "../support/client.ts";
import { Cluster } from "../support/cluster.ts";
import { runCommand, ServerProcess } from "../support/server_process.ts";
import { inOneDay } from "../support/temporary_store.ts";

Deno.test("servers obey a command at the next request of an account that both refuse from memory", () =>
  inOneDay(async () => {
    await using cluster = await Cluster.start();
    const { id, key } = await cluster.store.createAccount({ perDay: 1 });
    const outcomes = async () => [
      outcome(await cluster.list(0, key)),
      outcome(await cluster.list(1, key)),
    ];
    assertEquals(await outcomes(), ["200", "429 rate_limit_day"]);
    assertEquals(await outcomes(), ["429 rate_limit_day", "429 rate_limit_day"]);

    const { code } = await cluster.store.run("accounts", "plan", id, "business");

    assertEquals(code, 0);
    assertEquals(await outcomes(), ["200", "200"]);
  }));

Deno.test("commands are carried out by the service at SERVICE_URL, for those who know its OPERATOR_TOKEN", async () => {
  const OPERATOR_TOKEN = "a-token-that-nobody-else-can-know";
  await using server = await ServerProcess.start({ KV_PATH: ":memory:", OPERATOR_TOKEN });
  const run = (token: string, ...args: string[]) =>
    runCommand(args, { SERVICE_URL: server.origin, OPERATOR_TOKEN: token, KV_PATH: "/nowhere" });

  const made = await run(OPERATOR_TOKEN, "accounts", "create", "me");
  const refused = await run(OPERATOR_TOKEN.toUpperCase(), "accounts", "list");

  assertEquals(outcome(await call(server, "GET /v1/pets", { key: made.stdout.trim() })), "200");
  assertEquals([made.code, refused.code, refused.stdout], [0, 1, ""]);
  assertEquals(refused.errorLines, ["OPERATOR_TOKEN is not the token of this service."]);
});
