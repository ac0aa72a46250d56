import { parseArgs } from "node:util";
import { crash } from "./crash.ts";
import { disk } from "./disk.ts";
import { overload } from "./overload.ts";
import { type Finding, FULL, type Part } from "./part.ts";

const PARTS = new Map<string, Part>([
  ["crash", crash],
  ["overload", overload],
  ["disk", disk],
]);

const HELP = `Puts the service under stress, and checks that it keeps its promises. Needs Linux.

  deno task soak [options]

  --only NAME       run only this part; repeatable: ${[...PARTS.keys()].join(", ")}
  --kills N         how often to kill the service. Default: ${FULL.kills}
  --connections N   idle, incomplete and slow connections, as far as the system allows. Default: ${FULL.connections}
  --addresses N     addresses that send unknown keys. Default: ${FULL.addresses}

Prints a table on standard output and progress on standard error. Exit codes: 0 every promise was kept, 1 a promise was
broken, 2 invalid arguments.`;

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
  const rows: string[][] = [["part", "promise", "measured", "kept"], ["---", "---", "--:", "---"]];
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

/** Parses the command line. Throws if it is invalid. */
function parse(args: string[]) {
  const count = { type: "string" } as const;
  const { values: { help = false, only, ...counts } } = parseArgs({
    args,
    options: {
      help: { type: "boolean", short: "h" },
      only: { type: "string", multiple: true },
      kills: count,
      connections: count,
      addresses: count,
    },
  });
  const number = (name: keyof typeof counts) => {
    const text = counts[name] ?? `${FULL[name]}`;
    if (!/^[1-9]\d{0,8}$/.test(text)) {
      throw new Error(`--${name} must be an integer from 1 to 999999999`);
    }
    return Number(text);
  };
  const unknown = only?.find((name) => !PARTS.has(name));
  if (unknown !== undefined) throw new Error(`Unknown part: ${unknown}`);
  const effort = {
    ...FULL,
    kills: number("kills"),
    connections: number("connections"),
    addresses: number("addresses"),
  };
  return { help, parts: [...PARTS].filter(([name]) => only?.includes(name) ?? true), effort };
}

/** Runs a part. An exception counts as a broken promise. */
async function findingsOf(part: Part, effort: typeof FULL): Promise<Finding[]> {
  try {
    return await part(effort, note);
  } catch (error) {
    note(error instanceof Error ? `${error.stack}` : String(error));
    return [{ promise: "runs to the end", measured: String(error).split("\n")[0] ?? "", held: false }];
  }
}

function print(text: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));
}

function note(line: string): void {
  Deno.stderr.writeSync(new TextEncoder().encode(`${line}\n`));
}
