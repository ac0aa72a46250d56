import { assertEquals } from "@std/assert";
import { call, outcome } from "../support/client.ts";
import { runCommand, ServerProcess } from "./process.ts";
import { LIST } from "./shipped.ts";

Deno.test("commands run in the service at SERVICE_URL, but only with its OPERATOR_TOKEN", async () => {
  const OPERATOR_TOKEN = "a-token-that-nobody-else-can-know";
  await using server = await ServerProcess.start({ KV_PATH: ":memory:", OPERATOR_TOKEN });
  const run = (token: string, ...args: string[]) =>
    runCommand(args, { SERVICE_URL: server.origin, OPERATOR_TOKEN: token, KV_PATH: "/nowhere" });

  const created = await run(OPERATOR_TOKEN, "accounts", "create", "me");
  const refused = await run(OPERATOR_TOKEN.toUpperCase(), "accounts", "list");

  assertEquals(outcome(await call(server, created.stdout.trim(), LIST)), "200");
  assertEquals([created.code, refused.code, refused.stdout], [0, 1, ""]);
  assertEquals(refused.errorLines, ["OPERATOR_TOKEN is not this service's token."]);
});
