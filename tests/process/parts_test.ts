import { existsSync } from "node:fs";
import { assertEquals } from "@std/assert";
import { copyService, leaveOut } from "./checkout.ts";
import { call } from "../support/client.ts";
import { DenoProcess, ServerProcess } from "./process.ts";
import { LIST, METRIC } from "./shipped.ts";

const OPERATOR_TOKEN = "the-operators-token-in-this-one-test";
/** Each part, an operation that only it serves, and words that no text has without it. */
const PARTS = ([
  ["messages", "POST /v1/messages", /.*(?:\bmessages\b|\bqueue|\ba message\b).*/gi],
  ["page", "GET /", /.*\bon the page\b.*/gi],
] as const).filter(([part]) => existsSync(`${import.meta.dirname}/../../src/${part}`));

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
