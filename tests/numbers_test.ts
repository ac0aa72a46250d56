import { assertEquals } from "@std/assert";
import { STOP_TIMEOUT } from "../main.ts";
import { ANONYMOUS_LIMIT, SPENT_LOOK_UPS } from "../src/limits/anonymous.ts";
import { GRACE_SECONDS } from "../src/accounts/account_operations.ts";
import { MAX_ROTATIONS } from "../src/accounts/account.ts";
import { DAILY, HOURLY } from "../src/accounts/sign_up.ts";
import { FIRST_BAN, LONGEST_BAN } from "../src/limits/usage.ts";
import { REPLAY_HOURS } from "../src/web/headers.ts";
import { openApiDocument } from "../src/web/openapi.ts";
import { BODY_RULES, PLACES } from "../src/web/body.ts";
import { ERRORS } from "../src/web/error.ts";
import { MAX_LEASE_AGE, RETURN_TIME } from "../src/limits/allowance.ts";
import { UNAWARE } from "../src/limits/strikes.ts";
import { interfaceForClients } from "../src/app/document.ts";
import { CATALOGUE } from "../src/catalogue/catalogue.ts";
import { inWords as dayInWords } from "../src/web/deprecation.ts";
import { SAMPLES } from "./support/operations.ts";
import { OF_THINGS } from "./support/things.ts";

const UNITS = [["day", 86_400_000], ["hour", 3_600_000], ["minute", 60_000], ["second", 1_000]] as const;
const { values, levels } = BODY_RULES.bounds;
const bounds = `${inWords(values)} values`;
const size = `${BODY_RULES.maxBytes / 1024} KiB`;
const limit = SAMPLES.find(({ operation }) => operation.id === "listThings")?.operation.query["limit"]?.json;

const DOCUMENT = JSON.stringify(
  openApiDocument(SAMPLES.map(({ operation }) => operation), "", interfaceForClients(OF_THINGS)),
);

/** The guide for clients; empty if this service has no page. */
const GUIDE = await read("src/page/guide.md").catch(() => "");

/** The phrases that each text must contain, built from the service's constants. */
const EXPECTED: readonly (readonly [place: string, text: string, phrases: readonly string[]])[] = [
  ["README.md", await read("README.md"), [
    ...CATALOGUE.resources.flatMap(({ get }) =>
      get?.deprecated ? [`removed on ${dayInWords(get.deprecated.sunset)}`] : []
    ),
    `valid for ${GRACE_SECONDS} seconds`,
    `within ${REPLAY_HOURS} hours`,
    `banned for ${duration(FIRST_BAN)}`,
    `an address gets ${ANONYMOUS_LIMIT} requests a minute`,
  ]],
  ["src/operator/README.md", await read("src/operator/README.md"), [
    `\`rotation_limit\` after ${MAX_ROTATIONS} in an hour`,
    `A body has at most ${size}, ${bounds} and ${levels} levels`,
    `arrives within ${BODY_RULES.timeoutMs / 1_000} s. If it is chunked, its parts arrive within ${
      BODY_RULES.stallMs / 1_000
    } s`,
    `At most ${inWords(PLACES.all)} bodies are read at a time`,
    `more than ${
      PLACES.all - PLACES.plenty
    } are being read, one account can have at most ${PLACES.perSender} of them.`,
    `without an account can have at most ${PLACES.anonymous} together`,
    `more than ${duration(UNAWARE)} after the first 429`,
    `banned for ${duration(FIRST_BAN)}. Each further ban within a day is twice as long, up to ${
      duration(LONGEST_BAN)
    }.`,
    `429 after ${ANONYMOUS_LIMIT} in a minute from one address`,
    `looks up ${SPENT_LOOK_UPS} more keys a second`,
    `Only the ${ANONYMOUS_LIMIT} requests a minute of an address`,
    `four processes admit up to ${4 * ANONYMOUS_LIMIT} of them`,
    `limited to ${HOURLY.count} an hour from one address and to ${inWords(DAILY.count)} a day in total`,
    `within ${MAX_LEASE_AGE / 1_000} s once it no longer serves the account`,
    `may wait up to ${RETURN_TIME / 1_000} s`,
    `within ${duration(STOP_TIMEOUT)}`,
  ]],
  [
    "src/page/guide.md",
    GUIDE,
    GUIDE === "" ? [] : [
      `stays valid for ${GRACE_SECONDS} seconds`,
      `up to ${limit?.default} items, or up to ${limit?.maximum} with \`limit\``,
      `more than ${duration(UNAWARE)} after the first 429`,
      `banned for ${duration(FIRST_BAN)}. Each further ban within a day is twice as long, up to ${
        LONGEST_BAN / 3_600_000
      } hours.`,
      `an address gets ${ANONYMOUS_LIMIT} requests a minute`,
      `can sign up ${HOURLY.count} times an hour`,
      `A body can be at most ${size}`,
      `Within ${REPLAY_HOURS} hours`,
    ],
  ],
  ["ERRORS", JSON.stringify(ERRORS), [
    `more than ${bounds} or ${levels} levels`,
    `longer than ${duration(BODY_RULES.timeoutMs)}`,
    `paused for ${duration(BODY_RULES.stallMs)}`,
    `larger than ${size}`,
  ]],
  ["openApiDocument()", DOCUMENT, [
    `banned for ${duration(FIRST_BAN)}`,
    `Each further ban within a day is twice as long, up to ${LONGEST_BAN / 3_600_000} hours`,
  ]],
];

for (const [place, text, phrases] of EXPECTED) {
  Deno.test(`${place} states the numbers that the code uses`, () => {
    const words = text.replaceAll(/(?:\\n|\s)+/g, " ");
    assertEquals(phrases.filter((phrase) => !words.includes(phrase)), []);
  });
}

function read(name: string): Promise<string> {
  return Deno.readTextFile(`${import.meta.dirname}/../${name}`);
}

function inWords(count: number): string {
  return count.toLocaleString("en");
}

/** Such as `a minute` or `5 minutes`. */
function duration(ms: number): string {
  const [name, length] = UNITS.find(([, length]) => ms % length === 0) ?? ["ms", 1];
  return ms === length ? `a ${name}` : `${ms / length} ${name}s`;
}
