/** A table in Markdown; numbers stand on the right. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const rule = widths.map((width, column) => column === 0 ? "-".repeat(width) : ":".padStart(width, "-"));
  const pad = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  return [head, rule, ...rows].map((cells) => `| ${cells.map(pad).join(" | ")} |`).join("\n");
}

/** A number of three digits, or of as many as it has before the point. */
export function figure(value: number): string {
  const digits = value < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 };
  return value.toLocaleString("en-US", digits);
}

/** How many times as large as the second number the first one is. */
export function ratio(value: number, of: number): string {
  return `${
    (value / of).toLocaleString("en-US", {
      maximumSignificantDigits: value < of * 100 ? 2 : 3,
    })
  }×`;
}

/** The middle of some numbers. */
export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.floor(middle)] ?? NaN) +
    (sorted[Math.ceil(middle) - 1] ?? NaN)) / 2;
}
