// The faults in faults.txt, one a line: a path, a text that is once in that file, what replaces it, and perhaps the folder
// of tests that find it, between tabs.

/** A fault to plant. */
export interface Fault {
  readonly path: string;
  readonly from: string;
  readonly to: string;
  /** The tests that run first, if not those of its folder. */
  readonly tests?: string | undefined;
}

/** Reads the faults of faults.txt. */
export async function readFaults(): Promise<readonly Fault[]> {
  const text = await Deno.readTextFile(`${import.meta.dirname}/faults.txt`);
  return text.split("\n").filter((line) => line !== "").map((line) => {
    const [path = "", from = "", to = "", tests] = line.split("\t");
    return { path, from, to, tests };
  });
}

/** The line of a fault. */
export function lineOf({ path, from, to, tests }: Fault): string {
  return `${[path, from, to, ...(tests === undefined ? [] : [tests])].join("\t")}\n`;
}

/**
 * The text of a file with the fault.
 *
 * @throws {Error} if it does not have the text of the fault exactly once, or if the fault changes nothing.
 */
export function withFault(text: string, { path, from, to }: Fault): string {
  const parts = text.split(from);
  if (parts.length !== 2) throw new Error(`${path} has ${from} ${parts.length - 1} times, not once`);
  if (from === to) throw new Error(`${from} is not changed`);
  return parts.join(to);
}
