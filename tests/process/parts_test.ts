import { existsSync } from "node:fs";
import { assertEquals } from "@std/assert";
import { copyService, leaveOut, leaveOutRemote } from "./checkout.ts";
import { call } from "../support/client.ts";
import { DenoProcess, ServerProcess } from "./process.ts";
import { LIST, METRIC } from "./shipped.ts";

const OPERATOR_TOKEN = "the-operators-token-in-this-one-test";
/** Each part, an operation that only it serves, and words that no text has without it. */
const PARTS = ([
  ["messages", "POST /v1/messages", /.*(?:\bmessages\b|\bqueue|\ba message\b).*/gi],
  ["page", "GET /", /.*\bon the page\b.*/gi],
] as const).filter(([part]) => exists(part));

/** Whether this checkout has a folder of src. */
function exists(folder: string): boolean {
  return existsSync(`${import.meta.dirname}/../../src/${folder}`);
}

Deno.test.each(PARTS)("service works without %s, and no text speaks of it", async (part, served, words) => {
  const folder = await copyService();
  await leaveOut(folder, part);
  const run = (args: readonly string[], program: readonly string[]) =>
    new DenoProcess(args, {}, { program: [Deno.execPath(), ...program], cwd: folder }).ended();
  assertEquals((await run(["main.ts", "src/process/cli.ts"], ["check", "--quiet"])).errorLines, []);
  await using server = await ServerProcess.start({ KV_PATH: ":memory:", OPERATOR_TOKEN }, { cwd: folder });
  const { apiKey: key } = await (await server.fetch("POST /v1/accounts", { json: { name: "me" } })).json();

  assertEquals((await call(server, key, served)).status, 404);
  assertEquals((await call(server, key, LIST)).status, 200);
  const paths = [
    "/v1/openapi.json",
    "/operator/v1/openapi.json",
    "/metrics",
    ...(part === "page" ? [] : ["/"]),
  ];
  const texts = await Promise.all(paths.map(async (path) => {
    const response = await server.fetch(`GET ${path}`, { key: OPERATOR_TOKEN });
    assertEquals([path, response.status], [path, 200]);
    return await response.text();
  }));
  const helps = ["accounts", "items"].map((task) =>
    run(["-P", "src/process/cli.ts", task, "--help"], ["run"])
  );
  texts.push(...(await Promise.all(helps)).map(({ stdout }) => stdout));

  assertEquals(texts.flatMap((text) => text.replaceAll(/[{,<]/g, "\n").match(words) ?? []), []);
  assertEquals(texts.some((text) => text.includes(`${METRIC}_leases`)), true);
  await Deno.remove(folder, { recursive: true });
});

Deno.test({
  name: "service works on a file without engine/remote, and does not start on a KV server or on Deno Deploy",
  ignore: !exists("engine/remote"),
  async fn() {
    const cwd = await copyService();
    await leaveOutRemote(cwd);
    const check = { program: [Deno.execPath(), "check", "--quiet"], cwd };
    assertEquals(
      (await new DenoProcess(["main.ts", "src/process/cli.ts"], {}, check).ended()).errorLines,
      [],
    );
    await using server = await ServerProcess.start({ KV_PATH: ":memory:" }, { cwd });

    assertEquals((await call(server, undefined, "GET /ready")).status, 200);
    for (const variables of [{ KV_PATH: "http://127.0.0.1:1/" }, { DENO_DEPLOYMENT_ID: "7f3k" }]) {
      const { code, errorLines } = await new ServerProcess(variables, { cwd }).ended();
      const line = "This copy cannot use a KV server: src/engine/remote is missing.";
      assertEquals([code, errorLines], [1, [line]]);
    }
    await Deno.remove(cwd, { recursive: true });
  },
});
