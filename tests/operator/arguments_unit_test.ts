import { assert, assertEquals, assertMatch, assertStringIncludes } from "@std/assert";
import { resource } from "../../src/resource/mod.ts";
import { boolean, integer, optional, text } from "../../src/web/schema.ts";
import { OF_THINGS, THINGS } from "../support/things.ts";
import { clientTasks } from "../../src/process/cli.ts";
import { helpOf, runCommandLine } from "../../src/operator/command_line.ts";

const COUNT = "must be a whole number from 1 to 1000000000000";
const PLANS = "The plan must be one of free, pro, business, enterprise";
const NAME = "The NAME must have 1 to 100 printable characters, not only whitespace";
const REFERENCE = "--reference must have 1 to 100 visible ASCII characters";
const DURATION = "--grace must be a duration such as 30m, 24h or 7d";
const ENTERPRISE = "The enterprise plan requires --per-minute N and --per-day N";
const OF_AN_ACCOUNT = "show rotate suspend resume unban reset close";
const CREATE_OWN = "accounts create a --plan enterprise";
const NO_FIELD = "items things set needs --name, --weight, --state, --is-spare or --labels";
const TEXT = "--name must have a character other than whitespace, and no control characters (Unicode Cc)";

/** What words in angle brackets mean, beside these texts. */
const TEXTS: Readonly<Record<string, string>> = {
  "<empty>": "",
  "<blank>": "\u00a0 ",
  "<tab>": "a\tb",
  "<line>": "a\nb",
  "<turn>": "a\u202eb",
  "<long>": "a".repeat(101),
  "<escape>": "a\u001b[2J",
  "<half>": "half \ud83d",
};

/**
 * How command lines are rejected, and these, separated by `|`. In place of `*` comes each of the words. Those in angle
 * brackets are texts.
 */
const REJECTED: readonly (readonly [message: string, lines: string, words?: string])[] = [
  ["The commands are accounts", "|cats list|account list|create"],
  ["Name a command", "accounts|items"],
  ["There is no command accounts frobnicate", "accounts frobnicate"],
  ["There is no command items things create", "items things create"],
  ["accounts create needs a NAME", "accounts create|accounts create --plan free"],
  [NAME, "accounts create *", Object.keys(TEXTS).join(" ")],
  [REFERENCE, "accounts create a --reference *", "<empty> <escape> <long>"],
  [REFERENCE, "accounts list --reference=*", "<empty> <escape> <long>"],
  [REFERENCE.replace("--reference", "The REFERENCE"), "accounts reference acct_1 *", "<escape> <long>"],
  [NAME, "accounts rename acct_1 *", Object.keys(TEXTS).join(" ")],
  ["accounts rename needs an ID and a NAME", "accounts rename acct_1"],
  ["accounts reference needs an ID and a REFERENCE", "accounts reference acct_1"],
  ["--state must be one of active, banned, suspended, closed", "accounts list --state gone"],
  ["--plan must be one of free, pro, business, enterprise", "accounts list --plan gold"],
  ["--reference is for one NAME, not for -", "accounts create - --reference a"],
  [PLANS, "accounts create a --plan gold|accounts create a --plan FREE|accounts plan acct_1 gold"],
  [ENTERPRISE, "accounts create a --plan enterprise|accounts create a --plan enterprise --per-minute 5"],
  [ENTERPRISE, "accounts create - --plan enterprise --per-day 5|accounts plan acct_1 enterprise"],
  [
    `--per-minute ${COUNT}`,
    `${CREATE_OWN} --per-minute=* --per-day 5`,
    `0 -5 1e3 1000000000001 ${"9".repeat(400)}`,
  ],
  [`--per-day ${COUNT}`, "accounts plan acct_1 enterprise --per-minute 5 --per-day 1.5"],
  ["are for enterprise; the free plan has fixed limits", "accounts create a --per-minute 5"],
  ["are for enterprise; the pro plan has fixed limits", "accounts plan acct_1 pro --per-day 5"],
  ["has no argument 'extra'", "accounts * extra|items things delete 1 extra", "list"],
  ["has no argument 'extra'", "accounts * acct_1 extra|accounts plan acct_1 pro extra", "create show"],
  ["--plan", "accounts create a --plan|accounts close acct_1 --plan pro"],
  ["--gold", "accounts create a --gold|items things list --gold"],
  ["Unknown option '--json'", "accounts show acct_1 --json|items things delete 1 --json"],
  ["needs an ID", "accounts *|items things delete|items things set --name a", OF_AN_ACCOUNT],
  ["accounts plan needs an ID and a PLAN", "accounts plan|accounts plan acct_1"],
  [
    "needs the account's ID, acct_..., not its key",
    "accounts * as_test_1|accounts plan as_test_1 pro",
    OF_AN_ACCOUNT,
  ],
  ["The ID must have only letters, digits and _", "accounts * acct_1/..", OF_AN_ACCOUNT],
  [DURATION, "accounts rotate acct_1 --grace=*", "soon <empty> 5 1.5h 5w 1000000s"],
  [`ID ${COUNT}`, "items things delete *|items things set hammer --state lost", "0 1.0"],
  [NO_FIELD, "items things set 1"],
  ["--state must be one of new, used, lost", "items things set 1 --state broken"],
  ["--is-spare must be yes or no", "items things set 1 --is-spare true"],
  ["--name must have 1 to 255 characters", "items things set 1 --name <empty>"],
  [TEXT, "items things set 1 --name *", "<blank> <tab>"],
  [
    "--weight must be an integer",
    "items things set 1 --weight=*",
    "7.5 seven 9223372036854775808 <empty> 1e3",
  ],
];

/** Runs a command line that needs neither a store nor input. Returns its exit code and output. */
async function run(line: string): Promise<{ code: number; out: string[]; err: string[] }> {
  const unused = () => {
    throw new Error("This command line must not read or change anything");
  };
  const [out, err]: [string[], string[]] = [[], []];
  const code = await runCommandLine(
    clientTasks(OF_THINGS),
    line.split(" ").filter((word) => word !== "").map((word) =>
      word.replace(/<\w+>/, (name) => TEXTS[name] ?? name)
    ),
    {
      clock: unused,
      input: unused,
      out: (line) => Promise.resolve(void out.push(line)),
      err: (line) => err.push(line),
    },
    unused,
  );
  return { code, out, err };
}

Deno.test.each(
  REJECTED.flatMap(([message, lines, words = ""]) =>
    lines.split("|").flatMap((line) =>
      (line.includes("*") ? words.split(" ") : [""]).map((word) =>
        [line.replace("*", word), message] as const
      )
    )
  ),
)("runCommandLine() rejects '%s': %s", async (line, message) => {
  const { code, out, err } = await run(line);

  assertEquals([code, out, err.length], [2, [], 1]);
  assertStringIncludes(err.join(), message);
  const group = line.startsWith("items") ? "items" : "accounts";
  assertMatch(err.join(), new RegExp(`^[^\\n]*[^\\n.]\\. See: deno task ${group} --help$`));
});

Deno.test("runCommandLine() parses only the options of the command, and explains negative numbers only if there are any", async () => {
  const fields = { json: text({ max: 9 }), plan: boolean(), size: optional(integer(0, 9)) };
  const examples = { item: { json: "{}", plan: true }, change: {} };
  const [cups, mugs] = [["cups", "Cup"], ["mugs", "Mug"]].map(([name = "", item = ""]) =>
    resource({ ...THINGS, name, item, noun: ["a cup", "cups"], fields, filters: [], sorts: [], examples })
  );
  assert(cups && mugs);
  const tasks = clientTasks({ ...OF_THINGS, resources: [cups, mugs] });
  const io = { clock: Date.now, input: () => Promise.resolve([]), out: () => Promise.resolve(), err() {} };
  let runs = 0;

  assertEquals(/negative/.test(tasks.map(helpOf).join()), false);
  for (
    const line of ["accounts list --json", "items mugs list --json", "items cups set 1 --json {} --plan yes"]
  ) {
    const code = await runCommandLine(tasks, line.split(" "), io, () => Promise.resolve(void runs++));
    assertEquals([line, code], [line, 0]);
  }

  assertEquals(runs, 3);
});
