const ENCODER = new TextEncoder();
const interruption = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(name, () => interruption.abort());
}

/** Aborts on SIGINT or SIGTERM. Ends requests and child processes. */
export const interrupted: AbortSignal = interruption.signal;

/** An expected failure. The command prints its message and exits. */
export class Failure extends Error {}

/** Writes the result to standard output. */
export function print(text: string): void {
  Deno.stdout.writeSync(ENCODER.encode(`${text}\n`));
}

/** Writes a line of progress to standard error. */
export function note(line: string): void {
  Deno.stderr.writeSync(ENCODER.encode(`${line}\n`));
}
