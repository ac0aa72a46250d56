const ENCODER = new TextEncoder();
const interruption = new AbortController();
for (const name of ["SIGINT", "SIGTERM"] as const) {
  Deno.addSignalListener(name, () => interruption.abort());
}

/** Aborted by Ctrl-C; whatever takes long ends at that, and what it started ends with it. */
export const interrupted: AbortSignal = interruption.signal;

/** A reason to end which one line explains to the user of the command. */
export class Failure extends Error {}

/** Writes the result to standard output. */
export function print(text: string): void {
  Deno.stdout.writeSync(ENCODER.encode(`${text}\n`));
}

/** Writes a line of progress to standard error. */
export function note(line: string): void {
  Deno.stderr.writeSync(ENCODER.encode(`${line}\n`));
}
