import { assert } from "@std/assert";
import openapiTS, { astToString } from "openapi-typescript";
import { ServerProcess } from "../process/process.ts";
import { documentAt, DOCUMENTS, OPERATOR_TOKEN } from "./documents.ts";
import { walk } from "./walk.ts";

Deno.test("client in TypeScript calls every operation on accounts", async () => {
  await using server = await ServerProcess.start({ KV_PATH: ":memory:", OPERATOR_TOKEN });
  const cwd = import.meta.dirname ?? "";
  for (const [name, path] of DOCUMENTS) {
    const types = await openapiTS(await documentAt(server.origin + path));
    await Deno.writeTextFile(`${cwd}/${name}_schema.d.ts`, astToString(types));
  }

  const check = new Deno.Command(Deno.execPath(), { args: ["check", "--quiet", "walk.ts"], cwd });
  const { success, stderr } = await check.output();

  assert(success, new TextDecoder().decode(stderr));
  await walk(server.origin, OPERATOR_TOKEN);
});
