// Operators' commands over HTTP.
import { assertEquals } from "@std/assert";
import type { App } from "../../src/app/app.ts";
import { OF_THINGS } from "./things.ts";
import { clientTasks } from "../../src/process/cli.ts";
import { Client, type Target } from "../../src/operator/client.ts";
import { runCommandLine } from "../../src/operator/command_line.ts";
import { requestTo } from "./client.ts";
import { NOON } from "./time.ts";

/** The operator token. */
export const OPERATOR_TOKEN = "an-operators-token-of-32-characters";

/** The result of a command. */
export interface Outcome {
  readonly exit: number;
  /** Lines of standard output and of standard error. */
  readonly out: readonly string[];
  readonly err: readonly string[];
}

const INFO = { remoteAddr: { transport: "tcp", hostname: "198.51.100.1", port: 1 } } as const;

/** Runs a command that calls a service, such as `operate(app, ["accounts", "list"])`. */
export async function operate(app: App, args: readonly string[], input: string = ""): Promise<Outcome> {
  const [out, err]: [string[], string[]] = [[], []];
  const client = new Client(async (target, { method = "", ...init }) =>
    await app(requestTo("http://localhost", `${method} ${target}`, { key: OPERATOR_TOKEN, ...init }), INFO)
  );
  const exit = await runCommandLine(clientTasks(OF_THINGS), args, {
    clock: () => NOON,
    input: () => Promise.resolve(input.split("\n")),
    out: (line) => Promise.resolve(void out.push(line)),
    err: (line) => err.push(line),
  }, (work) => work(targetOf(client)));
  return { exit, out, err };
}

/** What commands of this client work on. */
export function targetOf(client: Client): Target {
  return {
    operate: (work) => work(client),
    store: () => {
      throw new TypeError("The store is another process's");
    },
  };
}

/** Runs a command that must succeed. Resolves to its lines of standard output and of standard error. */
export async function operated(app: App, args: readonly string[], input?: string): Promise<Outcome> {
  const outcome = await operate(app, args, input);
  assertEquals(outcome.exit, 0, outcome.err.join("\n"));
  return outcome;
}
