import { parseArguments } from "./commands/arguments.ts";
import { CommandError, type Terminal, UsageError } from "./commands/command.ts";
import { KEYS_HELP, keysCommand } from "./commands/keys.ts";
import { MESSAGES_HELP, messagesCommand } from "./commands/messages.ts";
import { ConfigError, readConfig } from "./config.ts";
import { StoreUnavailable } from "./kv/deadline.ts";
import { MEMORY, OpenError, openStore } from "./kv/open.ts";
import { print, printOutput } from "./terminal.ts";

/**
 * Carries out an operator's command, such as `["keys", "list"]`.
 * Resolves to the exit code: 0 done, 1 could not be done, 2 not understood.
 */
export async function main(args: readonly string[], terminal: Terminal): Promise<number> {
  const [group, ...rest] = args;
  try {
    if (group !== "keys" && group !== "messages") throw new UsageError("The commands are keys and messages");
    const help = group === "messages" ? MESSAGES_HELP : KEYS_HELP;
    const parsed = parseArguments(rest);
    if (parsed.options.help) {
      await terminal.out(help);
      return 0;
    }
    const { kvPath, environment } = readConfig(terminal.env);
    if (kvPath === MEMORY) {
      throw new ConfigError("KV_PATH=:memory: is private to the server; no command reaches it.");
    }
    const command = group === "keys"
      ? keysCommand(parsed, environment, terminal)
      : messagesCommand(parsed, terminal);
    const store = await openStore(kvPath);
    try {
      await command(store);
    } finally {
      await store.close();
    }
    return 0;
  } catch (error) {
    const [line, code] = explain(error, group);
    terminal.err(line);
    return code;
  }
}

function explain(error: unknown, group: string | undefined): [line: string, exitCode: number] {
  if (error instanceof UsageError) return [`${error.message}. See: deno task ${group ?? "keys"} --help`, 2];
  if (error instanceof CommandError) return [`${error.message}.`, 1];
  if (error instanceof ConfigError || error instanceof OpenError) return [error.message, 1];
  if (error instanceof StoreUnavailable) return [`The KV does not answer: ${error.message}.`, 1];
  return [`Failed: ${error instanceof Error ? error.message : typeof error}`, 1];
}

if (import.meta.main) {
  const code = await main(Deno.args, {
    env: (name) => Deno.env.get(name),
    clock: Date.now,
    out: printOutput,
    err: print,
  });
  Deno.exit(code);
}
