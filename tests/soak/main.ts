import { parseArgs } from "node:util";
import { print, printOutput } from "../../src/process/process.ts";
import { crash } from "./crash.ts";
import { disk } from "./disk.ts";
import { overload } from "./overload.ts";
import { type Finding, FULL, type Part } from "./part.ts";

const PARTS: Readonly<Record<string, Part>> = { crash, overload, disk };

const HELP = `Puts the service under stress, and checks that it keeps its promises. Needs Linux.

  deno task soak [options]

  --only NAME       run only this part; repeatable: ${Object.keys(PARTS).join(", ")}
  --kills N         how often to kill the service. Default: ${FULL.kills}
  --connections N   idle, incomplete and slow connections, as far as the system allows. Default: ${FULL.connections}
  --addresses N     addresses that send unknown keys. Default: ${FULL.addresses}

Prints a table on standard output and progress on standard error. Exits with 1 if a promise was broken.`;

const { values: { help, only, kills, connections, addresses } } = parseArgs({
  options: {
    only: { type: "string", multiple: true, default: Object.keys(PARTS) },
    kills: { type: "string", default: `${FULL.kills}` },
    connections: { type: "string", default: `${FULL.connections}` },
    addresses: { type: "string", default: `${FULL.addresses}` },
    help: { type: "boolean", short: "h", default: false },
  },
});
if (help) print(HELP);
else if (!await run()) Deno.exit(1);

/** Runs the parts, and prints what was found. Resolves to whether every promise was kept. */
async function run(): Promise<boolean> {
  const effort = {
    ...FULL,
    kills: Number(kills),
    connections: Number(connections),
    addresses: Number(addresses),
  };
  const rows: string[][] = [["part", "promise", "measured", "kept"], ["---", "---", "--:", "---"]];
  for (const [name, part] of Object.entries(PARTS).filter(([name]) => only.includes(name))) {
    const started = performance.now();
    const findings = await findingsOf(part, effort);
    print(`${name} took ${Math.round((performance.now() - started) / 1_000)} s`);
    for (const { promise, measured, held } of findings) {
      rows.push([name, promise, measured, held ? "yes" : "NO"]);
    }
  }
  await printOutput(rows.map((cells) => `| ${cells.join(" | ")} |`).join("\n"));
  return rows.every((cells) => cells.at(-1) !== "NO");
}

/** Runs a part. An exception counts as a broken promise. */
async function findingsOf(part: Part, effort: typeof FULL): Promise<Finding[]> {
  try {
    return await part(effort, print);
  } catch (error) {
    print(error instanceof Error ? `${error.stack}` : String(error));
    return [{ promise: "runs to the end", measured: String(error).split("\n")[0] ?? "", held: false }];
  }
}
