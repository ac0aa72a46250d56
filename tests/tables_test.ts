import { PLAN_LIMITS, PLANS } from "../src/accounts/account.ts";
import { inputsOf } from "../src/api/openapi.ts";
import type { Operation } from "../src/api/operation.ts";
import { FILE_TASKS } from "../src/cli.ts";
import { SETTINGS } from "../src/config.ts";
import { helpOf } from "../src/operator/command_line.ts";
import { STORE_TASKS } from "../src/operator/operator_route.ts";
import { Harness } from "./support/harness.ts";

/** Rows of cells, beginning with the header. */
type Table = readonly (readonly string[])[];

const ROOT = `${import.meta.dirname}/..`;
/** Each table is in at least one of these files. */
const DOCUMENTS = ["README.md", "src/operator/README.md"];

Deno.test(`tables in ${DOCUMENTS.join(", ")} match the declarations`, async () => {
  await using service = await Harness.open();
  const texts = await Promise.all(DOCUMENTS.map((name) => Deno.readTextFile(`${ROOT}/${name}`)));
  const tables = [
    operationsTable(service.app.operations),
    plansTable(),
    await commandsTable(),
    settingsTable(),
  ];

  const wrong = tables.filter((table) => {
    const found = texts.flatMap((text) => tableLike(table, text));
    return found.length === 0 || found.some((text) => text !== markdown(table));
  });

  if (wrong.length > 0) {
    throw new Error(`These tables should be:\n\n${wrong.map(markdown).join("\n\n")}\n`);
  }
});

function operationsTable(operations: readonly Operation[]): Table {
  const rows = operations.filter(({ tag }) => tag !== undefined).map((operation) => {
    const { summary, deprecated, isExtension, access } = operation;
    const name = `${summary}${deprecated ? " (deprecated)" : ""}${isExtension ? " \\*" : ""}`;
    const responses = Object.entries(operation.answers).filter(([status]) => Number(status) < 300)
      .map(([status, { description }]) => `${status}: ${lower(description)}`);
    return [name, requestOf(operation), responses.join("; "), access === "key" ? "yes" : "no"];
  });
  return [["operation", "request", "response", "key"], ...rows];
}

/** Method, path, query parameters, and fields of the body. A `?` marks optional fields. */
function requestOf(operation: Operation): string {
  const { method, path, query, body } = operation;
  const names = Object.keys(query);
  const target = `\`${method} ${path}${names.length > 0 ? `?${names.join("&")}` : ""}\``;
  if (body === undefined) return target;
  const members = inputsOf(operation).filter(({ place }) => place === "body")
    .map(({ name, isRequired }) => `"${name}"${isRequired ? "" : "?"}`);
  return `${target} \`{${members.join(", ")}}\``;
}

function plansTable(): Table {
  const rows = PLANS.map((plan) => {
    if (plan === "enterprise") return [plan, "as agreed", "as agreed"];
    const { minute, day } = PLAN_LIMITS[plan];
    return [plan, minute.toLocaleString("en"), day.toLocaleString("en")];
  });
  return [["plan", "requests a minute", "requests a day"], ...rows];
}

function settingsTable(): Table {
  const rows = Object.values(SETTINGS).map(({ name, defaultText, meaning }) => {
    const text = defaultText(() => undefined);
    return [`\`${name}\``, text && `\`${text}\``, meaning];
  });
  return [["variable", "default", "meaning"], ...rows];
}

/** The tasks of `deno.json`. A task with commands has a row for each command, with the first clause of its help. */
async function commandsTable(): Promise<Table> {
  const { tasks } = JSON.parse(await Deno.readTextFile(`${ROOT}/deno.json`));
  const helps = new Map([
    ...STORE_TASKS.map((task) => [task.name, helpOf(task)] as const),
    ...FILE_TASKS.map((task) => [task.name, helpOf(task)] as const),
  ]);
  const rows = Object.entries<{ description: string }>(tasks).flatMap(([task, { description }]) => {
    const help = helps.get(task) ?? "";
    const commands = commandsIn(help).map(([usage, text]) => [`${task} ${usage}`, text] as const);
    if (commands.length > 0) return commands;
    const [, usage = task] = /^Usage: deno task (.+)/.exec(help) ?? [];
    return [[usage, lower(description.replace(" (--help)", ""))] as const];
  });
  return [
    ["`deno task`", "what it does"],
    ...rows.map(([usage, text]) => [`\`${usage.replaceAll("|", "\\|")}\``, text]),
  ];
}

/** The commands in a help text, each with its first clause. One without a description gets that of the next. */
function commandsIn(help: string): (readonly [usage: string, text: string])[] {
  const [, list = ""] = /^Usage: .+ COMMAND\n\n(.+?)(?:\n\n|$)/s.exec(help) ?? [];
  const found = [...list.matchAll(/^ {2}(\S.*?)(?: {2,}|\n {3,}|$)((?:.|\n {3,})*)$/gm)];
  return found.map(([, usage = "", text = ""], index) => {
    const [, , next = ""] = found[index + 1] ?? [];
    const [clause = ""] = (text || next).replaceAll(/\s+/g, " ").split(/[;.] /);
    return [usage, clause];
  });
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

/** The tables in a text with the same header. */
function tableLike([header = []]: Table, text: string): string[] {
  const tables = text.match(/(?:^\|.*\|$\n?)+/gm) ?? [];
  const cellsOf = (line = "") => line.split("|").slice(1, -1).map((cell) => cell.trim());
  return tables.map((table) => table.trimEnd())
    .filter((table) => cellsOf(table.split("\n")[0]).join("|") === header.join("|"));
}

function lower(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}
