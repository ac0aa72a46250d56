import { assert, assertEquals } from "@std/assert";
import openapiTS, { astToString } from "openapi-typescript";
import { ServerProcess } from "../process/process.ts";
import { stringifyJson } from "../../src/web/schema.ts";
import { JSON_TYPE } from "../support/client.ts";
import { EMPTY, FULL } from "../support/specimens.ts";
import { SERVING } from "./catalogue.ts";
import { documentAt, DOCUMENTS, OPERATOR_TOKEN } from "./documents.ts";
import { PLAN, serveLaterRelease } from "./later_release.ts";
import { walk, walkLaterRelease } from "./walk.ts";

Deno.test("client in TypeScript calls every operation on accounts", async () => {
  const settings = { KV_PATH: ":memory:", OPERATOR_TOKEN };
  await using server = await ServerProcess.start(settings, { runtime: SERVING });
  const cwd = import.meta.dirname ?? "";
  for (const [name, path] of DOCUMENTS) {
    const types = await openapiTS(await documentAt(server.origin + path));
    await Deno.writeTextFile(`${cwd}/${name}_schema.d.ts`, astToString(types));
  }

  const check = new Deno.Command(Deno.execPath(), { args: ["check", "--quiet", "walk.ts"], cwd });
  const { success, stderr } = await check.output();

  assert(success, new TextDecoder().decode(stderr));
  await walk(server.origin, OPERATOR_TOKEN);
  for (const item of [FULL, EMPTY]) {
    const request = { key: OPERATOR_TOKEN, body: stringifyJson(item), headers: JSON_TYPE };
    assertEquals((await server.fetch("POST /operator/v1/specimens", request)).status, 201);
  }
  await using later = serveLaterRelease(server.origin);
  await walkLaterRelease(`http://localhost:${later.addr.port}`, PLAN);
});
