import { assertEquals } from "@std/assert";
import { call, outcome } from "./client.ts";
import { Cluster } from "./cluster.ts";
import { runCommand, ServerProcess } from "./server_process.ts";
import { type Allowance, inOneDay } from "./temporary_store.ts";

/** A command about an account, and what comes of it. */
interface Case extends Allowance {
  readonly command: string;
  /** What both servers answer at last before the command. */
  readonly before: string;
  /** What both answer after it. */
  readonly after: string;
  /** What both answer to the key that the command prints. */
  readonly withNewKey?: string;
}

const CASES: readonly Case[] = [
  { command: "close ID", before: "200", after: "401 invalid_api_key" },
  { command: "rotate ID", before: "200", after: "401 invalid_api_key", withNewKey: "200" },
  { command: "rotate ID --grace 24h", before: "200", after: "200", withNewKey: "200" },
  { command: "plan ID business", perDay: 1, before: "429 rate_limit_day", after: "200" },
  { command: "reset ID", perDay: 2, before: "429 rate_limit_day", after: "200" },
  { command: "unban ID", perMinute: 2, perDay: 1, before: "429 key_banned", after: "429 rate_limit_day" },
];

for (const { command, before, after, withNewKey, ...allowance } of CASES) {
  Deno.test(`servers obey accounts ${command} at the next request after ${before}`, () =>
    inOneDay(async () => {
      await using cluster = await Cluster.start();
      const { id, key } = await cluster.store.createAccount(allowance);
      await untilBoth(cluster, key, before);

      const { code, stdout } = await cluster.store.run("accounts", ...command.replace("ID", id).split(" "));

      assertEquals(code, 0);
      assertEquals(await outcomes(cluster, key), [after, after]);
      if (withNewKey) assertEquals(await outcomes(cluster, stdout.trim()), [withNewKey, withNewKey]);
    }));
}

/** Sends requests until both servers answer like this. */
async function untilBoth(cluster: Cluster, key: string, expected: string): Promise<void> {
  for (let round = 0; round < 10; round++) {
    if ((await outcomes(cluster, key)).every((outcome) => outcome === expected)) return;
  }
  throw new Error(`The servers never answered ${expected}`);
}

/** What both servers answer, the one after the other. */
async function outcomes(cluster: Cluster, key: string): Promise<string[]> {
  return [outcome(await cluster.list(0, key)), outcome(await cluster.list(1, key))];
}

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
