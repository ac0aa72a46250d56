import { stringifyJson } from "../web/schema.ts";

/** The output of a command. */
export interface Output {
  /** Writes a line to standard output. */
  readonly out: (line: string) => Promise<void>;
  /** Writes a line to standard error. */
  readonly err: (line: string) => void;
}

/** Columns of a table by name. Each function returns a cell of an item. */
export type Columns<Item> = Readonly<Record<string, (item: Item) => unknown>>;

/**
 * Begins a table with one line per item: a JSON object, or cells separated by tabs, with a header on standard error.
 * Returns a function that writes the line of an item.
 */
export function startTable<Item>(
  columns: Columns<Item>,
  asJson: boolean,
  { out, err }: Output,
): (item: Item) => Promise<void> {
  if (!asJson) err(Object.keys(columns).join("\t"));
  return (item) => {
    const cells = Object.entries(columns).map(([name, cellOf]) => [name, cellOf(item)] as const);
    const members = cells.filter(([, cell]) => cell !== undefined);
    return out(
      asJson
        ? printableJson(`{${members.map(([name, cell]) => `"${name}":${stringifyJson(cell)}`).join()}}`)
        : cells.map(([, cell]) => printable(textOf(cell))).join("\t"),
    );
  };
}

/** A cell as text. True and false are `yes` and `no`, as in options. */
function textOf(cell: unknown): string {
  if (typeof cell === "boolean") return cell ? "yes" : "no";
  return typeof cell === "object" && cell !== null ? stringifyJson(cell) : `${cell ?? "-"}`;
}

/** Replaces control characters, which could disrupt the terminal, and bidirectional controls. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_Control}]/gu, "\u{fffd}");
}

/** Escapes those characters in JSON text, unless JSON.stringify has already escaped them. */
export function printableJson(json: string): string {
  return json.replace(
    /[\x7f-\x9f\p{Bidi_Control}]/gu,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
