import { assertEquals } from "@std/assert";
import openapiTS, { astToString } from "openapi-typescript";
import { ServerProcess } from "../support/process.ts";
import { walk } from "./walk.ts";

const FOLDER = import.meta.dirname ?? "";

/** The part of an OpenAPI document that is used here. */
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: object }>>>>;
}

Deno.test("client generated from the OpenAPI document calls every operation", async () => {
  await using server = await ServerProcess.start({ KV_PATH: ":memory:" });
  const base = `http://localhost:${server.port}/v1`;
  const response = await fetch(`${base}/openapi.json`);
  const document = await response.text();
  await Deno.writeTextFile(`${FOLDER}/schema.d.ts`, astToString(await openapiTS(document)));

  assertEquals(await typeErrors("walk.ts"), "");
  const replies = await walk(base);

  assertEquals(successesOf(JSON.parse(document)).filter((success) => !replies.includes(success)), []);
});

async function typeErrors(file: string): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), { args: ["check", "--quiet", file], cwd: FOLDER });
  const { success, stderr } = await command.output();
  return success ? "" : new TextDecoder().decode(stderr);
}

/** Every successful response of every operation, such as `GET /pets 200`. */
function successesOf({ paths }: Document): string[] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { responses }]) =>
      Object.keys(responses).filter((status) => Number(status) < 400)
        .map((status) => `${method.toUpperCase()} ${path} ${status}`)
    )
  );
}
