// How much code there is, without comments and empty lines. As a program, prints a table for each folder of `src/`, and for
// the parts that the service does not need.
import { printOutput } from "../src/process/process.ts";

const ROOT = new URL("..", import.meta.url);
/** Of `operator/` and `process/`, what only commands need. */
const COMMANDS =
  /^src\/(?:operator\/(?:account_commands?|backup|change_commands|client|command_line|item_commands|key_commands|local|store_copy|table)|process\/cli)\.ts$/;
const NO_CODE = /^\s*(?:$|\/\/|\/\*|\*[ /]|\*$)/;

/** The parts that the service does not need, by how src/README.md names them. */
const OPTIONAL: Readonly<Record<string, (path: string) => boolean>> = {
  "`src/page/`": (path) => path.startsWith("src/page/"),
  "`src/messages/`": (path) => path.startsWith("src/messages/"),
  "`src/engine/remote/`": (path) => path.startsWith("src/engine/remote/"),
  "commands and backup": (path) => COMMANDS.test(path),
};

/** Lines of code in each file of the service, by its path, except for what is an adopter's. */
async function linesOfFiles(): Promise<readonly (readonly [path: string, lines: number])[]> {
  const paths = ["main.ts", ...await Array.fromAsync(sourcesIn("src"))];
  return await Promise.all(
    paths.sort().map(async (path) => {
      const text = await Deno.readTextFile(new URL(path, ROOT));
      return [path, text.split("\n").filter((line) => !NO_CODE.test(line)).length] as const;
    }),
  );
}

async function* sourcesIn(folder: string): AsyncGenerator<string> {
  for await (const { name, isDirectory } of Deno.readDir(new URL(folder, ROOT))) {
    const path = `${folder}/${name}`;
    if (isDirectory && path !== "src/catalogue") yield* sourcesIn(path);
    else if (/(?<!\.d)\.[jt]s$/.test(path)) yield path;
  }
}

/** Lines of code that a reader has to open, and of each part that the service does not need and that this checkout has. */
export async function linesOfParts(): Promise<Readonly<Record<string, number>>> {
  const parts = totals(
    await linesOfFiles(),
    (path) => Object.entries(OPTIONAL).find(([, isIn]) => isIn(path))?.[0] ?? "what you have to open",
  );
  return Object.fromEntries(parts);
}

/** Sums of lines, by a name that follows from the path. */
function totals(
  files: Awaited<ReturnType<typeof linesOfFiles>>,
  nameOf: (path: string) => string,
): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [path, lines] of files) sums.set(nameOf(path), (sums.get(nameOf(path)) ?? 0) + lines);
  return sums;
}

if (import.meta.main) {
  const folders = totals(await linesOfFiles(), (path) => path.split("/").slice(0, 2).join("/"));
  const rows = [...folders, ...Object.entries(await linesOfParts())];
  await printOutput(rows.map(([name, lines]) => `${`${lines}`.padStart(6)} ${name}`).join("\n"));
}
