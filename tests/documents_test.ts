// What documents state, against the code.
import { existsSync } from "node:fs";
import { assertEquals, assertGreater, assertGreaterOrEqual } from "@std/assert";
import { STOP_TIMEOUT } from "../main.ts";
import { ANONYMOUS_LIMIT, SPENT_LOOK_UPS } from "../src/limits/anonymous.ts";
import { MAX_ADDITIONS, MAX_ROTATIONS } from "../src/accounts/account.ts";
import { MAX_ADDED_KEYS } from "../src/accounts/added_keys.ts";
import { SPARED_REVOCATIONS } from "../src/accounts/key_operations.ts";
import { DAILY, HOURLY } from "../src/accounts/sign_up.ts";
import { FIRST_BAN, LONGEST_BAN } from "../src/limits/usage.ts";
import { openApiDocument } from "../src/web/openapi.ts";
import { OPERATORS_REQUESTS } from "../src/operator/operations.ts";
import { BODY_RULES, PLACES } from "../src/web/body.ts";
import { ERRORS } from "../src/web/error.ts";
import { MAX_LEASE_AGE, RETURN_TIME } from "../src/limits/allowance.ts";
import { UNAWARE } from "../src/limits/strikes.ts";
import { interfaceForClients } from "../src/app/document_operations.ts";
import { SAMPLES } from "./support/operations.ts";
import { OF_THINGS } from "./support/things.ts";
import { readFaults, withFault } from "./faults.ts";
import { linesOfParts } from "./lines.ts";
import { duration, readGuides } from "./tables.ts";

const { bounds: { values, levels }, maxBytes, stallMs, timeoutMs } = BODY_RULES;
const bounds = `${inWords(values)} values`;
const size = `${maxBytes / 1024} KiB`;
const often = PLACES.all - PLACES.plenty;
const limit = SAMPLES.find(({ operation }) => operation.id === "listThings")?.operation.query["limit"]?.json;
const bans = `banned for ${duration(FIRST_BAN)}. Each further ban within a day is twice as long, up to`;
const strikes = `more than ${duration(UNAWARE)} after the first 429`;
const perAddress = `an address gets ${ANONYMOUS_LIMIT} requests a minute`;

const DOCUMENT = JSON.stringify(
  openApiDocument(SAMPLES.map(({ operation }) => operation), "", interfaceForClients(OF_THINGS)),
);

/** How src/README.md names a file. */
const FILE = /^(?:\w+\/)*\w+\.ts$/;

/** The guide for clients; empty if this service has no page. */
const GUIDE = await read("src/page/guide.md").catch(() => "");

/** The phrases that each text must contain, built from the service's constants. */
const EXPECTED: readonly (readonly [place: string, text: string, phrases: readonly string[]])[] = [
  ["src/operator/README.md", await read("src/operator/README.md"), [
    `\`rotation_limit\` after ${MAX_ROTATIONS} in an hour`,
    `\`key_additions_limit\` after ${MAX_ADDITIONS} in an hour`,
    `${SPARED_REVOCATIONS} attempts to revoke a key`,
    `at most ${MAX_ADDED_KEYS} added keys`,
    `A body has at most ${size}, ${bounds} and ${levels} levels`,
    `arrives within ${timeoutMs / 1_000} s. If it is chunked, its parts arrive within ${stallMs / 1_000} s`,
    `At most ${inWords(PLACES.all)} bodies are read at a time`,
    `more than ${often} are being read, one account can have at most ${PLACES.perSender} of them.`,
    `without an account can have at most ${PLACES.anonymous} together`,
    `handles ${OPERATORS_REQUESTS.capacity} requests at a time. Up to ${OPERATORS_REQUESTS.maxWaiting} more wait`,
    `at most ${duration(OPERATORS_REQUESTS.maxWaitMs)}; any others`,
    strikes,
    `${bans} ${duration(LONGEST_BAN)}.`,
    `429 after ${ANONYMOUS_LIMIT} in a minute from one address`,
    `looks up ${SPENT_LOOK_UPS} more keys a second`,
    `Only the ${ANONYMOUS_LIMIT} requests a minute of an address`,
    `four processes admit up to ${4 * ANONYMOUS_LIMIT} of them`,
    `limited to ${HOURLY.count} an hour from one address and to ${inWords(DAILY.count)} a day in total`,
    `within ${MAX_LEASE_AGE / 1_000} s once it no longer serves the account`,
    `may wait up to ${RETURN_TIME / 1_000} s`,
    `within ${duration(STOP_TIMEOUT)}`,
  ]],
  ["src/page/guide.md", GUIDE, [
    `up to ${limit?.default} items, or up to ${limit?.maximum} with \`limit\``,
    strikes,
    `${bans} ${LONGEST_BAN / 3_600_000} hours.`,
    perAddress,
  ]],
  ["ERRORS", JSON.stringify(ERRORS), [
    `more than ${bounds} or ${levels} levels`,
    `longer than ${duration(timeoutMs)}`,
    `paused for ${duration(stallMs)}`,
    `larger than ${size}`,
  ]],
  ["openApiDocument()", DOCUMENT, [`${bans} ${LONGEST_BAN / 3_600_000} hours`]],
];

for (const [place, text, phrases] of EXPECTED) {
  Deno.test(`${place} states the numbers that the code uses`, () => {
    const words = text.replaceAll(/(?:\\n|\s)+/g, " ");
    assertEquals(phrases.filter((phrase) => text !== "" && !words.includes(phrase)), []);
  });
}

Deno.test("blocks and names of the guides are current: if not, run deno task docs", async () => {
  const outdated = (await readGuides()).filter(({ text, current }) => text !== current);

  assertEquals(outdated.map(({ path }) => path), []);
});

Deno.test("src/README.md says how much code there is", async () => {
  const rows = (await read("src/README.md")).split("\n");
  const wrong = Object.entries(await linesOfParts()).filter(([part, lines]) => {
    const [, , stated = ""] = rows.find((row) => row.startsWith(`| ${part}`))?.split("|") ?? [];
    return !(Math.abs(Number(stated.replace(",", "")) - lines) <= Math.max(100, lines / 20));
  });

  assertEquals(wrong, []);
});

Deno.test("every task that runs tests limits their time", async () => {
  const configs = await Promise.all(
    ["deno.json", "tests/browser/deno.json"].map((path) => orNothing(read(path), path)),
  );
  const tasks = configs.flatMap((text) => text?.match(/.*\bdeno test\b.*/g) ?? []);

  assertGreaterOrEqual(tasks.length, 4);
  assertEquals(tasks.filter((task) => !/--preload=\S*support\/time_limit\.ts/.test(task)), []);
});

Deno.test("security/README.md names only tests that exist", async () => {
  const table = await read("tests/security/README.md");
  const named = [...table.matchAll(/\]\(([\w./]+_test\.ts)\) "([^"]+)"/g)];
  const missing = await Promise.all(named.map(async ([, path = "", name = ""]) => {
    const source = await orNothing(read(`tests/security/${path}`), `tests/security/${path}`);
    // The source builds this name from parts.
    const isThere = source?.includes(name.replace(/^service (?=serves other )/, "")) ?? true;
    return isThere ? [] : [`${path}: ${name}`];
  }));

  assertGreater(named.length, 20);
  assertEquals(missing.flat(), []);
});

Deno.test("every name that src/README.md has beside a file is in that file", async () => {
  const guide = await read("src/README.md");
  const tour = /^## Follow a GET and a POST\n[^]*?^\*\*/m.exec(guide)?.[0] ?? "";
  const steps = tour.matchAll(/^\d+\. [^]*?(?=^\d+\. |\n\n)/gm).map(([step]) => step).toArray();
  const named = [...steps.flatMap(beside), ...inFiles(guide)];
  const missing = await Promise.all(named.map(async ([path, name]) => {
    const text = await orNothing(read(path), path);
    return text === undefined || hasName(text, name) ? [] : [`${path}: ${name}`];
  }));

  assertGreater(steps.length, 18);
  assertGreater(named.length, 40);
  assertEquals(missing.flat(), []);
});

Deno.test("every fault of faults.txt can be planted", async () => {
  const faults = await readFaults();
  const planted = faults.map(async (fault) => {
    const text = await orNothing(read(fault.path), fault.path);
    return text === undefined ? "" : withFault(text, fault);
  });
  const problems = (await Promise.allSettled(planted)).filter(({ status }) => status === "rejected");

  assertEquals(problems, []);
  assertGreaterOrEqual(faults.length, 80); // In a copy with a fault, those of its file are missing.
});

/** A file, and a name that should be in it. */
type Named = readonly [path: string, name: string];

/** The names beside the file of a step, and beside those between parentheses. */
function beside(step: string): Named[] {
  const parts = [
    step.replaceAll(/\([^`)]*`[^]*?`[^)`]*\)/g, ""),
    ...step.match(/\([^`)]*`[^]*?`[^)`]*\)/g) ?? [],
  ];
  return parts.flatMap((part) => {
    let path = "";
    return [...part.matchAll(/`([^`]+)`/g)].flatMap(([, text = ""]): Named[] => {
      if (!FILE.test(text)) return path === "" ? [] : [[path, text]];
      path = pathOf(text);
      return [[path, ""]];
    });
  });
}

/** The names that a text says to be in a file, such as "`SETTINGS` in `process/config.ts`". */
function inFiles(text: string): Named[] {
  const phrases = text.matchAll(/((?:`[^`]+`(?:,?\sand\s|,\s)?)+),?\s(?:of\s|in\s|\()`([\w/]+\.ts)`/g);
  return phrases.flatMap(([, names = "", file = ""]) =>
    [...names.matchAll(/`([^`]+)`/g)].map(([, name = ""]): Named => [pathOf(file), name])
  ).toArray();
}

/** The path of a file that src/README.md names. */
function pathOf(file: string): string {
  return /^(?:main\.ts$|tests\/)/.test(file) ? file : `src/${file}`;
}

/** Whether code has each part of a name, such as `Items.change(id, decide, call)`, outside of comments. */
function hasName(text: string, name: string): boolean {
  const code = text.replaceAll(/^\s*(?:\/\/|\/?\*).*$/gm, "");
  return name.replace(/\(.*/s, "").split(".").every((part) => new RegExp(`\\b${part}\\b`).test(code));
}

/** The text of a file; undefined if it is in a folder that a fork has left out, or one that is an adopter's. */
async function orNothing(text: Promise<string>, path: string): Promise<string | undefined> {
  try {
    return await text;
  } catch (error) {
    const isOwn = path.startsWith("src/catalogue/");
    if (!isOwn && existsSync(new URL(`../${path.replace(/[^/]*$/, "")}`, import.meta.url))) throw error;
    return undefined;
  }
}

function read(name: string): Promise<string> {
  return Deno.readTextFile(`${import.meta.dirname}/../${name}`);
}

function inWords(count: number): string {
  return count.toLocaleString("en");
}
