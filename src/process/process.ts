/** The exit code if the reader of the output has closed it, as if SIGPIPE had ended the process. */
export const BROKEN_PIPE = 141;

const ENCODER = new TextEncoder();

/** Writes a line for people to standard error. Ignores failures. */
export function print(line: string): void {
  try {
    Deno.stderr.writeSync(ENCODER.encode(`${line}\n`));
  } catch {
    // The reader has closed it, or the disk is full.
  }
}

/** Writes lines for people to standard error, with the time at the end of each, as in the log. */
export function printAt(now: number, lines: string): void {
  print(lines.replaceAll(/$/gm, ` [${new Date(now).toISOString()}]`));
}

/** Writes a line of output to standard output. Resolves once all of it is written. */
export async function printOutput(line: string): Promise<void> {
  const writer = Deno.stdout.writable.getWriter();
  await writer.write(ENCODER.encode(`${line}\n`));
  writer.releaseLock();
}

/** Yields the lines of standard input. */
export async function* readLines(): AsyncGenerator<string> {
  let rest = "";
  for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split(/\r?\n/);
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest !== "") yield rest;
}

const SIGNALS: readonly Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM"];

/** Calls `stop` with each SIGINT and SIGTERM until the result is disposed. */
export function onStopSignal(stop: (signal: Deno.Signal) => void): Disposable {
  const listeners = SIGNALS.map((signal) => [signal, () => stop(signal)] as const);
  for (const [signal, listener] of listeners) Deno.addSignalListener(signal, listener);
  return {
    [Symbol.dispose]() {
      for (const [signal, listener] of listeners) Deno.removeSignalListener(signal, listener);
    },
  };
}
