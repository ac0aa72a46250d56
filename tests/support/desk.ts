// Operators' commands over HTTP.
import { assertEquals } from "@std/assert";
import type { App } from "../../src/app.ts";
import { requestTo } from "./client.ts";

/** The operator token. */
export const OPERATOR_TOKEN = "an-operator's-token-of-32-characters";

/** The result of a command. */
export interface Outcome {
  readonly exit: number;
  /** Lines of standard output and of standard error. */
  readonly out: readonly string[];
  readonly err: readonly string[];
}

const INFO = { remoteAddr: { transport: "tcp", hostname: "198.51.100.1", port: 1 } } as const;

/** Runs a command over HTTP, such as `operate(app, ["accounts", "list"])`. */
export async function operate(app: App, args: readonly string[], input: string = ""): Promise<Outcome> {
  const options = { key: OPERATOR_TOKEN, json: { args, input } };
  const response = await app(requestTo("http://localhost", "POST /operator", options), INFO);
  assertEquals(response.status, 200);
  const lines: Record<string, unknown>[] = (await response.text()).trimEnd().split("\n")
    .map((line) => JSON.parse(line));
  const texts = (name: string) => lines.flatMap((line) => name in line ? [String(line[name])] : []);
  return { exit: Number(lines.at(-1)?.exit ?? NaN), out: texts("out"), err: texts("err") };
}

/** Runs a command that must succeed. Resolves to its lines of standard output and of standard error. */
export async function operated(app: App, args: readonly string[], input?: string): Promise<Outcome> {
  const outcome = await operate(app, args, input);
  assertEquals(outcome.exit, 0, outcome.err.join("\n"));
  return outcome;
}
