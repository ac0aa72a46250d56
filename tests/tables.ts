// What the guides derive from declarations: tables, names of the service, and the first call. As a program, it writes them.
import { existsSync } from "node:fs";
import { slugOf } from "../src/app/service.ts";
import { ACCESS } from "../src/service/mod.ts";
import { inWords } from "../src/web/deprecation.ts";
import { inputsOf } from "../src/web/openapi.ts";
import type { DeclaredOperation } from "../src/web/operation.ts";
import { CATALOGUE, DEFAULT_KV_PATH } from "../src/catalogue/catalogue.ts";
import { clientTasks, FILE_TASKS } from "../src/process/cli.ts";
import { SETTINGS } from "../src/process/config.ts";
import { usageOf } from "../src/operator/command_line.ts";
import { FIRST_CALL } from "./first_call.ts";
import { Harness } from "./support/harness.ts";
import { ALL } from "./support/operations.ts";

/** Rows of cells, beginning with the header. */
type Table = readonly (readonly string[])[];

const ROOT = `${import.meta.dirname}/..`;
/** Files that `deno task docs` writes in part: with tables, or with names of the service. Each table is in at least one of them. */
export const GENERATED: readonly string[] = [
  ...["README.md", "src/operator/README.md"],
  ...["src", "tests"].flatMap((top) => [`${top}/operator/alerts.yml`, `${top}/messages/alerts.yml`]),
].filter((path) => existsSync(`${ROOT}/${path}`));

/** A guide, as it is and with tables that match the declarations. */
export interface Guide {
  readonly path: string;
  readonly text: string;
  readonly current: string;
}

/**
 * Reads the guides with tables.
 *
 * @throws {Error} if no guide has one of the tables.
 */
export async function readGuides(): Promise<readonly Guide[]> {
  await using service = await Harness.open({
    ...ALL,
    catalogue: CATALOGUE,
    publicUrl: "http://localhost:8000",
  });
  const tables = [
    operationsTable(service.app.operations),
    operatorsTable(service.app.operations),
    plansTable(),
    await commandsTable(),
    settingsTable(),
  ];
  const missing = new Set(tables);
  const guides: Guide[] = [];
  for (const path of GENERATED.map((name) => `${ROOT}/${name}`)) {
    const text = await Deno.readTextFile(path);
    const current = named(declared(text)).replaceAll(
      /(?:^\|.*\|\n)+/gm,
      (found) => {
        const table = tables.find((table) => headerOf(markdown(table)) === headerOf(found));
        if (table === undefined) return found;
        missing.delete(table);
        return `${markdown(table)}\n`;
      },
    );
    guides.push({ path, text, current });
  }
  const [[header = []] = []] = missing;
  if (missing.size > 0) throw new Error(`No guide has the table: ${header.join(", ")}`);
  return guides;
}

if (import.meta.main) {
  const guides = await readGuides();
  for (const { path, text, current } of guides) {
    if (current !== text) await Deno.writeTextFile(path, current);
  }
}

/**
 * A guide whose heading and first sentence have the title, and whose store's file, first call and deprecations are as
 * declared.
 */
function declared(text: string): string {
  const deprecations = CATALOGUE.resources.flatMap(({ path, id, get }) =>
    get?.deprecated
      ? [
        `- \`GET ${path}/{${id}}\` is deprecated and will be removed on ${inWords(get.deprecated.sunset)}.\n`,
      ]
      : []
  );
  return text.replace(/^# (.+)\n\n\1 is /, `# ${CATALOGUE.title}\n\n${CATALOGUE.title} is `)
    .replaceAll(/\bdata\/[\w-]+\.kv\b/g, DEFAULT_KV_PATH)
    .replace(/^## First call\n[^]*?(?=^## )/m, () => `${FIRST_CALL}\n`)
    .replace(/(?:^- `GET [^`]+` is deprecated and will be removed on .+\.\n)+/m, deprecations.join(""));
}

/** A text with the names of folders, metrics and alerts that follow from the title, in place of those that are shipped. */
function named(text: string): string {
  const inCapitals = slugOf(CATALOGUE.title, "-").replaceAll(
    /(?:^|-)(\w)/g,
    (_, letter) => letter.toUpperCase(),
  );
  return text.replaceAll(/\banimal([-_])store/g, (_, space) => slugOf(CATALOGUE.title, space))
    .replaceAll("AnimalStore", inCapitals);
}

function operationsTable(operations: readonly DeclaredOperation[]): Table {
  const isForClients = ({ tag, access }: DeclaredOperation) =>
    tag !== undefined && access !== ACCESS.operator;
  const rows = operations.filter(isForClients).map((operation) => {
    const { summary, deprecated, isExtension, access } = operation;
    const name = `${summary}${deprecated ? " (deprecated)" : ""}${
      isExtension && CATALOGUE.interface.original ? " \\*" : ""
    }`;
    const responses = Object.entries(operation.answers).filter(([status]) => Number(status) < 300)
      .map(([status, { description }]) => `${status}: ${lower(description)}`);
    return [name, requestOf(operation), responses.join("; "), access === ACCESS.key ? "yes" : "no"];
  });
  return [["operation", "request", "response", "key"], ...rows];
}

function operatorsTable(operations: readonly DeclaredOperation[]): Table {
  const rows = operations.filter(({ access }) => access === ACCESS.operator).map((operation) => {
    const [[status = "200"] = []] = Object.entries(operation.answers);
    return [operation.summary, requestOf(operation), status];
  });
  return [["operators' operation", "request", "response"], ...rows];
}

/** Method, path, query parameters, and fields of the body. A `?` marks optional fields. */
function requestOf(operation: DeclaredOperation): string {
  const { method, path, query, body } = operation;
  const names = Object.keys(query);
  const target = `\`${method} ${path}${names.length > 0 ? `?${names.join("&")}` : ""}\``;
  if (body === undefined) return target;
  const members = inputsOf(operation).filter(({ place }) => place === "body")
    .map(({ name, isRequired }) => `"${name}"${isRequired ? "" : "?"}`);
  return `${target} \`{${members.join(", ")}}\``;
}

function plansTable(): Table {
  const { limits, own } = CATALOGUE.plans;
  const rows = Object.entries(limits).map((
    [plan, { minute, day }],
  ) => [plan, minute.toLocaleString("en"), day.toLocaleString("en")]);
  return [["plan", "requests a minute", "requests a day"], ...rows, [own, "as agreed", "as agreed"]];
}

function settingsTable(): Table {
  const rows = Object.values(SETTINGS).map(({ name, defaultText, meaning }) => {
    const text = defaultText(() => undefined);
    return [`\`${name}\``, text && `\`${text}\``, meaning];
  });
  return [["variable", "default", "meaning"], ...rows];
}

/** The tasks of `deno.json` for operators. A task with commands has a row for each, with the first clause of its help. */
async function commandsTable(): Promise<Table> {
  const { tasks } = JSON.parse(await Deno.readTextFile(`${ROOT}/deno.json`));
  const ofTask = (usage: string, name: string) =>
    [usage, lower(tasks[name].description.replace(" (--help)", ""))] as const;
  const ofClients = clientTasks(CATALOGUE).flatMap((task) =>
    "command" in task ? [] : Object.entries(task.commands).map(([name, command]) => {
      const [clause = ""] = command.help.replaceAll(/\s+/g, " ").split(/[;.] /);
      return [`${task.name} ${usageOf(name, command)}`, clause] as const;
    })
  );
  const ofFiles = FILE_TASKS.flatMap((task) =>
    "command" in task ? [ofTask(usageOf(task.name, task.command), task.name)] : []
  );
  return [
    ["`deno task`", "what it does"],
    ...[ofTask("start", "start"), ...ofClients, ...ofFiles].map((
      [usage, text],
    ) => [`\`${usage.replaceAll("|", "\\|")}\``, text]),
  ];
}

/** Formats the table like `deno fmt`. */
function markdown([header = [], ...rows]: Table): string {
  const widths = header.map((_, column) =>
    Math.max(...[header, ...rows].map((row) => row[column]?.length ?? 0))
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(" | ")} |`;
  return [header, widths.map((width) => "-".repeat(width)), ...rows].map(line).join("\n");
}

/** The names of a table's columns. */
function headerOf(table: string): string {
  return table.split("\n", 1).join().split("|").map((cell) => cell.trim()).join("|");
}

function lower(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}
