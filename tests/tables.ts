// What the guides derive from declarations: blocks between markers, and names of the service. As a program, it writes them.
import { existsSync } from "node:fs";
import { MAX_ROTATIONS } from "../src/accounts/account.ts";
import { GRACE_SECONDS } from "../src/accounts/account_operations.ts";
import { MAX_ADDED_KEYS } from "../src/accounts/added_keys.ts";
import { HOURLY } from "../src/accounts/sign_up.ts";
import { slugOf } from "../src/app/service.ts";
import { ANONYMOUS_LIMIT } from "../src/limits/anonymous.ts";
import { FIRST_BAN } from "../src/limits/usage.ts";
import { ACCESS } from "../src/service/mod.ts";
import { inWords } from "../src/web/deprecation.ts";
import { IDEMPOTENCY_KEY, REPLAY_HOURS } from "../src/web/headers.ts";
import { inputsOf } from "../src/web/openapi.ts";
import type { DeclaredOperation } from "../src/web/operation.ts";
import { CATALOGUE, DEFAULT_KV_PATH } from "../src/catalogue/catalogue.ts";
import { clientTasks, FILE_TASKS } from "../src/process/cli.ts";
import { SETTINGS } from "../src/process/config.ts";
import { usageOf } from "../src/operator/command_line.ts";
import { FIRST_CALL } from "./first_call.ts";
import { requireStartable } from "./startable.ts";
import { Harness } from "./support/harness.ts";
import { ALL } from "./support/operations.ts";

/** Rows of cells, beginning with the header. */
type Table = readonly (readonly string[])[];

const UNITS = [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000], ["second", 1_000]] as const;
const LIST = new Intl.ListFormat("en");
/** The key that an operation needs, by its scope. */
const KEYS = { read: "`read`", write: "`read/write`", manage: "the first" } as const;
const ROOT = `${import.meta.dirname}/..`;
/** The adopter's: only its blocks are written, and it need not have any. */
const README = "README.md";
/** Files that `deno task docs` writes in part: blocks between markers and, except in README.md, names of the service. */
export const GENERATED: readonly string[] = [
  ...[README, "src/operator/README.md"],
  ...["src", "tests"].flatMap((top) => [`${top}/operator/alerts.yml`, `${top}/messages/alerts.yml`]),
].filter((path) => existsSync(`${ROOT}/${path}`));

/** A block, between markers. The second marker of each keeps `deno fmt` from aligning tables. */
export const BLOCK: RegExp =
  /(?<=^<!-- deno task docs: (.*) -->\n<!-- deno-fmt-ignore-start -->\n)[^]*?(?=^<!-- deno-fmt-ignore-end -->$)/gm;

/** A guide, as it is and with blocks and names that match the declarations. */
export interface Guide {
  readonly path: string;
  readonly text: string;
  readonly current: string;
}

/**
 * Reads the guides.
 *
 * @throws {Error} if one has an unknown block, or if none but README.md has one of the operators' blocks.
 */
export async function readGuides(): Promise<readonly Guide[]> {
  const blocks = await createBlocks();
  const missing = new Set(["settings", "commands", "operators"]);
  const guides: Guide[] = [];
  for (const name of GENERATED) {
    const path = `${ROOT}/${name}`;
    const text = await Deno.readTextFile(path);
    const current = (name === README ? text : named(text)).replaceAll(BLOCK, (_, block) => {
      missing.delete(block);
      const written = blocks[block];
      if (written === undefined) throw new Error(`${name} has an unknown block: ${block}`);
      return `${written.trim()}\n`;
    });
    guides.push({ path, text, current });
  }
  const [block] = missing;
  if (block !== undefined) throw new Error(`No guide has the block: ${block}`);
  return guides;
}

if (import.meta.main) {
  await requireStartable();
  const guides = await readGuides();
  for (const { path, text, current } of guides) {
    if (current !== text) await Deno.writeTextFile(path, current);
  }
}

/** The blocks by name, in Markdown. README.md of a fork names them, so they are neither renamed nor removed. */
async function createBlocks(): Promise<Readonly<Record<string, string>>> {
  await using service = await Harness.open({
    ...ALL,
    catalogue: CATALOGUE,
    publicUrl: "http://localhost:8000",
  });
  const { operations } = service.app;
  return {
    "title": `# ${CATALOGUE.title}`,
    "first call": await formatted(FIRST_CALL),
    "operations": `${markdown(operationsTable(operations))}\n\n${await formatted(promises(operations))}`,
    "limits": `${markdown(plansTable())}\n\n${await formatted(limits())}`,
    "operators": markdown(operatorsTable(operations)),
    "commands": markdown(await commandsTable()),
    "settings": markdown(settingsTable()),
  };
}

/** A text with the names of the store's file, folders, metrics and alerts that follow from the title, in place of others. */
function named(text: string): string {
  const inCapitals = slugOf(CATALOGUE.title, "-").replaceAll(
    /(?:^|-)(\w)/g,
    (_, letter) => letter.toUpperCase(),
  );
  return text.replaceAll(/\bdata\/[\w-]+\.kv\b/g, DEFAULT_KV_PATH)
    .replaceAll(/\banimal([-_])store/g, (_, space) => slugOf(CATALOGUE.title, space))
    .replaceAll("AnimalStore", inCapitals);
}

/** What README.md says beneath the table of operations. */
function promises(operations: readonly DeclaredOperation[]): string {
  const { interface: { original }, resources } = CATALOGUE;
  const repeatable = operations.filter(({ access, headers }) =>
    access === ACCESS.key && headers["Idempotency-Key"] === IDEMPOTENCY_KEY
  ).map(({ method, path }) => `\`${method} ${path}\``);
  const removals = resources.flatMap(({ path, id, get }) =>
    get?.deprecated
      ? [`- \`GET ${path}/{${id}}\` is deprecated and will be removed on ${inWords(get.deprecated.sunset)}.`]
      : []
  );
  return `
${original ? `\n\\* Not part of interface ${original}, the first version that clients could rely on.\n` : ""}
${
    repeatable.length > 0
      ? `- With an \`Idempotency-Key\`, ${
        LIST.format(repeatable)
      } can be repeated: if a response is lost, send the same
  request again within ${REPLAY_HOURS} hours. You get the first response, and nothing is created twice.`
      : ""
  }
- After a rotation, the old key stays valid for ${GRACE_SECONDS} seconds. **If a key has leaked, send
  \`{"graceSeconds":0}\`**, and every other key stops working immediately. This works, uncharged, even if the limits
  are used up or the account is banned, up to ${MAX_ROTATIONS} times an hour.
- An account can have ${MAX_ADDED_KEYS} further keys with the scope \`read\` or \`read/write\`, which the column *key* shows.
${removals.join("\n")}`;
}

/** What README.md says beneath the table of plans. */
function limits(): string {
  return `
Limits are exact: an account never gets a single request more than its plan allows, no matter how many processes serve
it. Minutes and days follow the UTC clock. After a 429, wait \`Retry-After\` seconds. An account that goes on
sending requests is banned for ${
    duration(FIRST_BAN)
  }, and for longer each time. Without a valid key, an address gets
${ANONYMOUS_LIMIT} requests a minute and ${HOURLY.count} sign-ups an hour. The guide for clients says what counts.`;
}

function operationsTable(operations: readonly DeclaredOperation[]): Table {
  const isForClients = ({ tag, access }: DeclaredOperation) =>
    tag !== undefined && access !== ACCESS.operator;
  const rows = operations.filter(isForClients).map((operation) => {
    const { summary, deprecated, isExtension, access, scope } = operation;
    const name = `${summary}${deprecated ? " (deprecated)" : ""}${
      isExtension && CATALOGUE.interface.original ? " \\*" : ""
    }`;
    const responses = Object.entries(operation.answers).filter(([status]) => Number(status) < 300)
      .map(([status, { description }]) => `${status}: ${lower(description)}`);
    return [name, requestOf(operation), responses.join("; "), access === ACCESS.key ? KEYS[scope] : "no"];
  });
  return [["operation", "request", "response", "key"], ...rows];
}

function operatorsTable(operations: readonly DeclaredOperation[]): Table {
  const rows = operations.filter(({ path }) => path.startsWith("/operator/v1/")).map((operation) => {
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

/** A table that is not aligned, so that a change of one cell is a change of one line. */
function markdown([header = [], ...rows]: Table): string {
  const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
  return [header, header.map(() => "---"), ...rows].map(line).join("\n");
}

function lower(sentence: string): string {
  return sentence.charAt(0).toLowerCase() + sentence.slice(1);
}

/** Such as `a minute` or `5 minutes`. */
export function duration(ms: number): string {
  const [name, length] = UNITS.find(([, length]) => ms % length === 0) ?? ["ms", 1];
  return ms === length ? `a ${name}` : `${ms / length} ${name}s`;
}

/** Markdown as `deno fmt` formats it. */
async function formatted(text: string): Promise<string> {
  const command = new Deno.Command(Deno.execPath(), {
    args: ["fmt", "--ext", "md", "--line-width", "110", "-"],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = command.stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
  const { stdout } = await command.output();
  return new TextDecoder().decode(stdout);
}
