/** A table in Markdown, with numbers aligned right. A row may be shorter than the head. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0)));
  const rule = widths.map((width, column) => column === 0 ? "-".repeat(width) : ":".padStart(width, "-"));
  const pad = ([first = "", ...others]: readonly string[]) =>
    widths.map((width, column) =>
      column === 0 ? first.padEnd(width) : (others[column - 1] ?? "").padStart(width)
    );
  return [head, rule, ...rows].map((cells) => `| ${pad(cells).join(" | ")} |`).join("\n");
}

/** Formats a number with three significant digits, or with all of its integer part. */
export function figure(value: number): string {
  const digits = value < 100 ? { maximumSignificantDigits: 3 } : { maximumFractionDigits: 0 };
  return value.toLocaleString("en-US", digits);
}

/** Formats the first number as a multiple of the second: with two decimals below 2. */
export function ratio(value: number, of: number): string {
  const times = value / of;
  const digits = times < 2
    ? { minimumFractionDigits: 2, maximumFractionDigits: 2 }
    : { maximumSignificantDigits: times < 100 ? 2 : 3 };
  return `${times.toLocaleString("en-US", digits)}×`;
}

/** The median: for an even count, the mean of the two middle numbers. */
export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  return ((sorted[Math.floor(middle)] ?? NaN) +
    (sorted[Math.ceil(middle) - 1] ?? NaN)) / 2;
}
