import { assertEquals } from "@std/assert";
import openapiTS, { astToString } from "openapi-typescript";
import { ServerProcess } from "../server/server_process.ts";

const FOLDER = import.meta.dirname ?? "";

async function deno(...args: readonly string[]): Promise<{ code: number; output: string }> {
  const { code, stdout, stderr } = await new Deno.Command(Deno.execPath(), { args: [...args], cwd: FOLDER })
    .output();
  return { code, output: new TextDecoder().decode(code === 0 ? stdout : stderr) };
}

Deno.test("a client generated from the OpenAPI document signs up, adds, lists and changes animals", async () => {
  await using server = await ServerProcess.start({ KV_PATH: ":memory:" });
  const document = await fetch(`http://localhost:${server.port}/v1/openapi.json`);
  const types = astToString(await openapiTS(await document.text()));
  await Deno.writeTextFile(`${FOLDER}/schema.d.ts`, types);

  const checked = await deno("check", "--quiet", "walk.ts");
  const walked = await deno(
    "run",
    "--quiet",
    "--no-check",
    "-A",
    "walk.ts",
    `http://localhost:${server.port}/v1`,
  );

  assertEquals(checked, { code: 0, output: "" });
  assertEquals(walked, { code: 0, output: '[{"id":1,"name":"Rex","categoryId":1,"status":"sold"}]\n' });
});
