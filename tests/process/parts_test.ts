import { assertEquals, assertStringIncludes } from "@std/assert";
import { copyService, rewrite } from "./checkout.ts";
import { call } from "../support/client.ts";
import { LIST, METRIC } from "./shipped.ts";
import { DenoProcess, ServerProcess } from "./process.ts";

/** A copy of the service without a part: without its folder, and without the lines that name it in `service.ts`. */
async function leaveOut(part: string): Promise<string> {
  const folder = await copyService();
  await Deno.remove(`${folder}/src/${part}`, { recursive: true });
  await rewrite(
    `${folder}/src/app/service.ts`,
    (text) =>
      text.replace(new RegExp(`^import .* from "\\.\\./${part}/.*\\n`, "m"), "")
        .replace(
          /(?<=PARTS: .* = )\[.*\]/,
          (list) => list.replace(new RegExp(`${part.toUpperCase()}(, )?`), ""),
        ),
  );
  return folder;
}

Deno.test.each([
  ["messages", 200, 404],
  ["page", 404, 202],
])("service works without %s, which are one folder and one line", async (part, ofPage, ofMessage) => {
  const folder = await leaveOut(part);
  const check = new DenoProcess(["main.ts", "src/process/cli.ts"], {}, {
    program: [Deno.execPath(), "check", "--quiet"],
    cwd: folder,
  });
  assertEquals((await check.ended()).errorLines, []);
  const OPERATOR_TOKEN = "the-operators-token-in-this-one-test";
  await using server = await ServerProcess.start({ KV_PATH: ":memory:", OPERATOR_TOKEN }, { cwd: folder });
  const { apiKey: key } = await (await server.fetch("POST /v1/accounts", { json: { name: "me" } })).json();

  assertEquals((await call(server, key, "GET /")).status, ofPage);
  const message = await call(server, key, "POST /v1/messages", { json: { message: "Hello" } });
  assertEquals(message.status, ofMessage);
  assertEquals((await call(server, key, LIST)).status, 200);
  for (const path of ["/metrics", "/operator/v1/openapi.json", "/v1/openapi.json"]) {
    const text = await (await server.fetch(`GET ${path}`, { key: OPERATOR_TOKEN })).text();
    assertStringIncludes(text, path === "/metrics" ? `${METRIC}_leases` : '"openapi":"3.1.0"');
    assertEquals(/messages_waiting|"\/messages"/.test(text), part !== "messages");
  }
  await Deno.remove(folder, { recursive: true });
});
