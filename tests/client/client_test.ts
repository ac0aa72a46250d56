import { assertEquals } from "@std/assert";
import openapiTS, { astToString } from "openapi-typescript";
import { ServerProcess } from "../support/process.ts";
import { walkAsOperator } from "./operator_walk.ts";
import { walk } from "./walk.ts";

const FOLDER = import.meta.dirname ?? "";

/** The part of an OpenAPI document that is used here. */
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: object }>>>>;
}

const OPERATOR_TOKEN = "the-operators-token-in-this-one-test";

Deno.test("clients generated from the OpenAPI documents call every operation", async () => {
  await using server = await ServerProcess.start({ KV_PATH: ":memory:", OPERATOR_TOKEN });
  const origin = `http://localhost:${server.port}`;
  const documents = [
    await describe(`${origin}/v1`, "schema.d.ts"),
    await describe(`${origin}/operator/v1`, "operator_schema.d.ts"),
  ];

  assertEquals(await typeErrors("walk.ts"), "");
  assertEquals(await typeErrors("operator_walk.ts"), "");
  const replies = [
    await walk(`${origin}/v1`),
    await walkAsOperator(`${origin}/operator/v1`, OPERATOR_TOKEN),
  ];

  const missing = documents.map((document, index) =>
    successesOf(document).filter((success) => !replies[index]?.includes(success))
  );
  assertEquals(missing, [[], []]);
});

/** Writes types for the operations below this URL. Resolves to their document. */
async function describe(url: string, file: string): Promise<Document> {
  const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
  const document = await (await fetch(`${url}/openapi.json`, { headers })).text();
  await Deno.writeTextFile(`${FOLDER}/${file}`, astToString(await openapiTS(document)));
  return JSON.parse(document);
}

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
