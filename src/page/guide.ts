// The guide, with what the catalogue and the settings of the service decide, and the operations, as Markdown.
import type { DeclaredOperation } from "../web/mod.ts";
import { errorsOf, errorsOfAll, inputsOf, needsOf } from "../web/openapi.ts";
import { inWords } from "../web/headers.ts";
import { resolved } from "../web/schema.ts";
import { ACCESS, BASE_PATH, needsToken, PROXY_ERRORS } from "../service/mod.ts";
import type { PartOptions } from "../operator/part.ts";
import { keyStart } from "../accounts/api_key.ts";
import { IDENTITY } from "../catalogue/identity.ts";
import { read } from "./frame.ts";
import { exampleOf, inOrder, sampleTextOf, typeOf } from "./reference.ts";
import { ORIGIN_PLACEHOLDER } from "./script/sample.js";

/** What the page and its texts need to know about the service. */
export type PageOptions = Omit<PartOptions, "store" | "items" | "hasOperators">;

/** Path of the changes in each version. */
export const CHANGES_PATH = "/docs/changes";
/** Says what stands for the page's host in commands. The script leaves out the paragraph if it copies the guide. */
export const HOST_NOTE = "In the commands, replace THIS_HOST with the host of this page.";
const GUIDE = read("guide.md");

/** The operations of clients that documents have; without sign-up if it is closed, because all it does is refuse. */
export function clientsOperations({ operations, signUpIsOpen }: PageOptions): DeclaredOperation[] {
  return operations().filter(({ tag, access }) =>
    tag && !needsToken(access) && (signUpIsOpen || access !== ACCESS.address)
  );
}

/** The prefix of the service's URLs in texts. */
export function baseOf({ publicUrl }: PageOptions): string {
  return publicUrl ?? ORIGIN_PLACEHOLDER;
}

/** The operations of the guide's first commands: to sign up, if clients can, and to list. */
export function firstOf(
  options: PageOptions,
): readonly (DeclaredOperation | undefined)[] {
  const operations = clientsOperations(options);
  return [operations.find(({ access }) => access === ACCESS.address), operations[0]];
}

/** The guide. Comments with the names in `left` stay. @throws {Error} if another comment has no text. */
export function guideText(options: PageOptions, left: readonly string[] = []): string {
  const { publicUrl = "", environment, catalogue: { resources, plans, keyPrefix } } = options;
  const operations = clientsOperations(options);
  const base = baseOf(options);
  const command = (operation?: DeclaredOperation) => operation && fence("sh", sampleTextOf(operation, base));
  const [signUp, list] = firstOf(options);
  const exact = resources.flatMap(({ fields }) => Object.entries(fields))
    .filter(([, schema]) => resolved(schema).format === "int64").map(([name]) => `\`${name}\``);
  const numbers = (counts: readonly number[]) =>
    counts.map((count) => count.toLocaleString("en")).join(" | ");
  const texts: Readonly<Record<string, string | undefined>> = {
    base:
      `The base URL is \`${base}${BASE_PATH}\`. Tools read [openapi.json](${publicUrl}${BASE_PATH}/openapi.json), an ` +
      "OpenAPI 3.1 document.",
    host: publicUrl ? "" : HOST_NOTE,
    key: signUp
      ? "**Make a key.** You need no email address."
      : "**Ask for a key.** Sign-up is closed: the operator of the service runs `deno task accounts create`.",
    "sign-up": command(signUp) ?? "",
    call: command(list),
    keys: `This is a ${environment} service: its keys begin with \`${keyStart(keyPrefix, environment)}\`.`,
    plans: [
      "| Plan | Requests a minute | a day |",
      "| --- | --- | --- |",
      ...Object.entries(plans.limits).map(([plan, { minute, day }]) =>
        `| ${plan} | ${numbers([minute, day])} |`
      ),
      `| ${plans.own} | as agreed | as agreed |`,
    ].join("\n"),
    errors: errorsOfAll(operations, PROXY_ERRORS)
      .map(({ code, status, means, todo }) => `- \`${status} ${code}\`: ${means} ${todo}`).join("\n"),
    integers: exact.length > 0 ? `In this service, ${[...new Set(["`id`", ...exact])].join(", ")}.` : "",
    deprecations: operations.flatMap(({ id, summary, deprecated }) =>
      deprecated ? `- [${summary}](#${id}): until ${inWords(deprecated.sunset)}.` : []
    ).join("\n"),
  };
  return GUIDE.replaceAll(/^<!-- (.+) -->$/gm, (comment, name) => {
    const text = left.includes(name) ? comment : texts[name];
    if (text === undefined) throw new Error(`There is nothing for ${comment}`);
    return text;
  });
}

/** The guide and the operations, for programs that read Markdown. */
export function renderText(options: PageOptions): string {
  const [, ...sections] = guideText(options).split(/^(?=## )/m);
  const { title } = options.catalogue;
  const guide = sections.join("").replaceAll("../CHANGES.md", `${options.publicUrl ?? ""}${CHANGES_PATH}`);
  const operations = clientsOperations(options).map((operation) => operationText(operation, baseOf(options)));
  const text = [`# ${title}`, `> ${IDENTITY.summary}`, guide.trim(), "## Operations", ...operations].join(
    "\n\n",
  );
  return `${text.replaceAll(/\n{3,}/g, "\n\n")}\n`;
}

function operationText(operation: DeclaredOperation, base: string): string {
  const { method, path, summary, description, deprecated, answers } = operation;
  const inputs = inputsOf(operation).map(({ name, place, isRequired, schema }) => {
    const type = typeOf({ json: schema, definitions: operation.body?.definitions ?? {} });
    return `- \`${name}\` (${place}${isRequired ? ", required" : ""}): ${type}. ${schema.description ?? ""}`
      .trim();
  });
  return [
    `### ${summary}`,
    `\`${method} ${path}\`${deprecated ? `, deprecated, works until ${inWords(deprecated.sunset)}` : ""}`,
    description ?? "",
    needsOf(operation) ?? "",
    inputs.join("\n"),
    fence("sh", sampleTextOf(operation, base)),
    ...Object.entries(answers).map(([status, { description, body }]) =>
      `\`${status}\`: ${description}.${exampleOf(body) && `\n\n${fence("json", exampleOf(body))}`}`
    ),
    `Errors: ${inOrder(errorsOf(operation)).map(({ code, status }) => `\`${status} ${code}\``).join(", ")}.`,
  ].filter(Boolean).join("\n\n");
}

function fence(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}
