import { stringifyJson } from "../http/json.ts";
import type { CommandIo } from "./command_line.ts";

/** Columns of a table by name, each with what it tells of a thing. */
export type Columns<Thing> = Readonly<Record<string, (thing: Thing) => unknown>>;

/**
 * Begins a list of things: a line each with tabs in between, below a header for people, or a JSON object each.
 * Returns what writes the line of a thing.
 */
export function startTable<Thing>(
  columns: Columns<Thing>,
  asJson: boolean,
  { out, err }: Pick<CommandIo, "out" | "err">,
): (thing: Thing) => Promise<void> {
  if (!asJson) err(Object.keys(columns).join("\t"));
  return (thing) => {
    const cells = Object.entries(columns).map(([name, tell]) => [name, tell(thing)] as const);
    const members = cells.filter(([, cell]) => cell !== undefined);
    return out(
      asJson
        ? printableJson(`{${members.map(([name, cell]) => `"${name}":${stringifyJson(cell)}`).join()}}`)
        : cells.map(([, cell]) => printable(`${cell ?? "-"}`)).join("\t"),
    );
  };
}

/** The text without control characters, which a terminal might obey, and bidirectional controls. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_Control}]/gu, "\u{fffd}");
}

/** The same JSON without those characters, some of which JSON leaves as they are. */
export function printableJson(json: string): string {
  return json.replace(
    /[\x7f-\x9f\p{Bidi_Control}]/gu,
    (control) => `\\u${control.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
