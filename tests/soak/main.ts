import { parseArgs } from "node:util";
import { contention } from "./contention.ts";
import { crash } from "./crash.ts";
import { disk } from "./disk.ts";
import { month } from "./month.ts";
import { overload } from "./overload.ts";
import { type Finding, FULL, type Part } from "./part.ts";
import { storeCrash } from "./store_crash.ts";

const PARTS = new Map<string, Part>([
  ["crash", crash],
  ["store-crash", storeCrash],
  ["contention", contention],
  ["overload", overload],
  ["disk", disk],
  ["month", month],
]);

const HELP = `Puts the service under stress and sees whether it keeps its promises. Needs Linux.

  deno task soak [options]

  --only NAME       this part alone; may be repeated: ${[...PARTS.keys()].join(", ")}
  --kills N         kills of the service, and of the store if that is fewer (${FULL.kills}, ${FULL.storeKills})
  --stops N         how often the store stands still (${FULL.stops})
  --seconds N       how long processes contend (${FULL.seconds})
  --connections N   idle, half-sent and slow ones; as many as the system allows (${FULL.connections})
  --addresses N     how many send unknown keys (${FULL.addresses})

DENOKV names the binary of a denokv; without it, the engine of @deno/kv is the store that is killed. The table
goes to standard output, progress to standard error. Exit codes: 0 every promise was kept, 1 one was not, 2
not understood.`;

Deno.exit(await main(Deno.args));

async function main(args: string[]): Promise<number> {
  let options: ReturnType<typeof parse>;
  try {
    options = parse(args);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    note(`${error.message} (see --help)`);
    return 2;
  }
  if (options.help) {
    print(HELP);
    return 0;
  }
  const rows: string[][] = [["part", "promise", "measured", "held"], ["---", "---", "--:", "---"]];
  let allHeld = true;
  for (const [name, part] of options.parts) {
    const started = performance.now();
    const findings = await findingsOf(part, options.effort);
    allHeld &&= findings.every(({ held }) => held);
    note(`${name} took ${Math.round((performance.now() - started) / 1_000)} s`);
    for (const { promise, measured, held } of findings) {
      rows.push([name, promise, measured, held ? "yes" : "NO"]);
    }
  }
  for (const cells of rows) print(`| ${cells.join(" | ")} |`);
  return allHeld ? 0 : 1;
}

/** What the command line asks for; throws when it is not understood. */
function parse(args: string[]) {
  const count = { type: "string" } as const;
  const { values: { help = false, only, ...counts } } = parseArgs({
    args,
    options: {
      help: { type: "boolean", short: "h" },
      only: { type: "string", multiple: true },
      kills: count,
      stops: count,
      seconds: count,
      connections: count,
      addresses: count,
    },
  });
  const number = (name: keyof typeof counts) => {
    const text = counts[name] ?? `${FULL[name]}`;
    if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error(`--${name} takes a whole number from 1`);
    return Number(text);
  };
  const unknown = only?.find((name) => !PARTS.has(name));
  if (unknown !== undefined) throw new Error(`There is no ${unknown}`);
  const kills = number("kills");
  const effort = {
    ...FULL,
    kills,
    storeKills: Math.min(kills, FULL.storeKills),
    stops: number("stops"),
    seconds: number("seconds"),
    connections: number("connections"),
    addresses: number("addresses"),
  };
  return { help, parts: [...PARTS].filter(([name]) => only?.includes(name) ?? true), effort };
}

/** A part that fails has held nothing. */
async function findingsOf(part: Part, effort: typeof FULL): Promise<Finding[]> {
  try {
    return await part(effort, note);
  } catch (error) {
    note(error instanceof Error ? `${error.stack}` : String(error));
    return [{ promise: "to the end", measured: String(error).split("\n")[0] ?? "", held: false }];
  }
}

function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));
}

function note(line: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`));
}
