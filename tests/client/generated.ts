// Types generated from OpenAPI documents.
import openapiTS, { astToString } from "openapi-typescript";

const FOLDER = import.meta.dirname ?? "";

/** The part of an OpenAPI document that is used here. */
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses: object }>>>>;
}

/** The operator token of the services here. */
export const OPERATOR_TOKEN = "the-operators-token-in-this-one-test";

/** Writes types for the operations below this URL. Resolves to their document. */
export async function describe(url: string, file: string): Promise<Document> {
  const document = await documentAt(url);
  await Deno.writeTextFile(`${FOLDER}/${file}`, astToString(await openapiTS(document)));
  return JSON.parse(document);
}

/** The text of the document of the operations below this URL. */
export async function documentAt(url: string): Promise<string> {
  const headers = { authorization: `Bearer ${OPERATOR_TOKEN}` };
  return await (await fetch(`${url}/openapi.json`, { headers })).text();
}

/** The type errors of a file here. */
export async function typeErrors(file: string): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), { args: ["check", "--quiet", file], cwd: FOLDER });
  const { success, stderr } = await command.output();
  return success ? "" : new TextDecoder().decode(stderr);
}

/** Every successful response of every operation, such as `GET /account 200`. */
export function successesOf({ paths }: Document): string[] {
  return Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { responses }]) =>
      Object.keys(responses).filter((status) => Number(status) < 400)
        .map((status) => `${method.toUpperCase()} ${path} ${status}`)
    )
  );
}
