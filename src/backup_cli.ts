import { ConfigError, DEFAULT_KV_PATH, OUT_OF_REACH, readConfig } from "./config.ts";
import { isUrl, MEMORY } from "./kv/open.ts";
import { EXIT_CODES, expect, parseArguments } from "./operator/arguments.ts";
import { backUp, type CopyOptions, restore } from "./operator/backup.ts";
import { CommandError, type Terminal, UsageError } from "./operator/terminal.ts";
import { BROKEN_PIPE, print, printOutput } from "./stdio.ts";

const BACKUP_HELP = `Usage: deno task backup FILE

Copies the store at KV_PATH (${DEFAULT_KV_PATH}) into a new file, while the service goes on. FILE has
everything that was stored when the command began. It appears once it is complete and checked; what
is cut short leaves nothing (kill -9 leaves a folder whose name ends with .unfinished). Keep it as
safe as the store itself. A relative path starts at the project's folder, wherever the command is
typed.

${EXIT_CODES}`;

const RESTORE_HELP = `Usage: deno task restore FILE

Puts a backup where KV_PATH (${DEFAULT_KV_PATH}) says. No store may be there: stop the service, which
would go on with the old store wherever that is, and move that away with those of its -wal, -shm
and -journal that exist. The store appears once it is complete and checked; what is cut short leaves
nothing. A relative path starts at the project's folder, wherever the command is typed.

${EXIT_CODES}`;

/**
 * Carries out `["backup", FILE]` or `["restore", FILE]`, with the environment variable that `env` reads. Resolves
 * to the exit code: 0 done, 1 could not be done, 2 not understood.
 */
export async function main(
  args: readonly string[],
  env: (name: "KV_PATH" | "SERVICE_URL") => string | undefined,
  surroundings: CopyOptions & Pick<Terminal, "out">,
): Promise<number> {
  const { out, err } = surroundings;
  const command = args[0] === "restore" ? "restore" : "backup";
  try {
    const parsed = parseArguments(args, 1);
    if (parsed.options.help) {
      await out(command === "restore" ? RESTORE_HELP : BACKUP_HELP);
      return 0;
    }
    const [file = ""] = expect(parsed, ["a FILE"]);
    const kvPath = readFilePath(env);
    await (command === "restore" ? restore(file, kvPath, surroundings) : backUp(kvPath, file, surroundings));
    return 0;
  } catch (error) {
    if (error instanceof Deno.errors.BrokenPipe) return BROKEN_PIPE;
    if (error instanceof UsageError) {
      err(`${error.message}. See: deno task ${command} --help`);
      return 2;
    }
    if (error instanceof CommandError) err(`${error.message}.`);
    else if (error instanceof ConfigError) err(error.message);
    else throw error;
    return 1;
  }
}

/** The path of the store's file. */
function readFilePath(env: (name: "KV_PATH" | "SERVICE_URL") => string | undefined): string {
  if (env("SERVICE_URL")) {
    throw new ConfigError(
      "Backups are made and restored where the store's file is: unset SERVICE_URL, and set KV_PATH.",
    );
  }
  const { kvPath = DEFAULT_KV_PATH } = readConfig((name) => name === "KV_PATH" ? env(name) : undefined);
  if (kvPath === MEMORY) throw new ConfigError(OUT_OF_REACH);
  if (isUrl(kvPath)) {
    throw new ConfigError(
      "KV_PATH is the URL of a KV Connect server: run this on its machine, with KV_PATH at its SQLite file.",
    );
  }
  return kvPath;
}

/** Aborts at the first SIGINT or SIGTERM. */
function stopSignal(): AbortSignal {
  const stop = new AbortController();
  const signals: Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM"];
  for (const name of signals) {
    Deno.addSignalListener(name, () => stop.abort(new CommandError(`it was stopped by ${name}`)));
  }
  return stop.signal;
}

if (import.meta.main) {
  const surroundings = { out: printOutput, err: print, signal: stopSignal() };
  Deno.exit(await main(Deno.args, (name) => Deno.env.get(name), surroundings));
}
