import { assertEquals } from "@std/assert";
import type { App } from "../../src/app.ts";

/** What an operator has to send here. */
export const OPERATOR_TOKEN = "an-operator's-token-of-32-characters";

/** What a command came to. */
export interface Outcome {
  readonly exit: number;
  /** Lines for programs, and for people. */
  readonly out: readonly string[];
  readonly err: readonly string[];
}

const INFO = { remoteAddr: { transport: "tcp", hostname: "198.51.100.1", port: 1 } } as const;

/** Has a service carry out an operator's command over HTTP, such as `operate(app, ["accounts", "list"])`. */
export async function operate(app: App, args: readonly string[], input: string = ""): Promise<Outcome> {
  const headers = { authorization: `Bearer ${OPERATOR_TOKEN}`, "content-type": "application/json" };
  const body = JSON.stringify({ args, input });
  const request = new Request("http://localhost/operator", { method: "POST", headers, body });
  const response = await app(request, INFO);
  assertEquals(response.status, 200);
  const lines: Record<string, unknown>[] = (await response.text()).trimEnd().split("\n")
    .map((line) => JSON.parse(line));
  const texts = (name: string) => lines.flatMap((line) => name in line ? [String(line[name])] : []);
  return { exit: Number(lines.at(-1)?.exit ?? NaN), out: texts("out"), err: texts("err") };
}

/** The same, for a command that has to succeed; resolves to its lines for programs and for people. */
export async function operated(app: App, args: readonly string[], input?: string): Promise<Outcome> {
  const outcome = await operate(app, args, input);
  assertEquals(outcome.exit, 0, outcome.err.join("\n"));
  return outcome;
}
