const ENCODER = new TextEncoder();

/** Writes a line of the result to standard output. */
export function print(line: string): void {
  Deno.stdout.writeSync(ENCODER.encode(`${line}\n`));
}

/** Writes a line of progress to standard error. */
export function note(line: string): void {
  Deno.stderr.writeSync(ENCODER.encode(`${line}\n`));
}
