// @ts-check
// Texts: what a response says, and how the page writes it.

/**
 * Splits JSON into indented pieces, which are then coloured. Numbers are not parsed, so they keep all digits.
 * @param {string} text
 * @returns {[kind: "name" | "string" | "number" | "plain", text: string][]}
 */
export function jsonPieces(text) {
  const token = /"(?:[^"\\]|\\.)*"(\s*:)?|-?\d[\d.eE+-]*|true|false|null|[{}[\],]/g;
  /** @type {ReturnType<typeof jsonPieces>} */
  const pieces = [];
  let depth = 0;
  let previous = "";
  const breakLine = () => pieces.push(["plain", `\n${"  ".repeat(depth)}`]);
  for (const [found, colon] of text.matchAll(token)) {
    const opened = previous === "{" || previous === "[";
    const closes = found === "}" || found === "]";
    if (closes) depth--;
    if (opened !== closes) breakLine();
    if (found === "{" || found === "[") depth++;
    if (colon !== undefined) pieces.push(["name", found.slice(0, -colon.length)], ["plain", ": "]);
    else if (found.startsWith('"')) pieces.push(["string", found]);
    else pieces.push([/^[-\d]/.test(found) ? "number" : "plain", found]);
    if (found === ",") breakLine();
    previous = found;
  }
  return pieces;
}

/** The cursor in the link to the next page; empty on the last page. @param {string | null} link */
export function nextCursor(link) {
  const [, cursor = ""] = /[?&]cursor=([^&>]+)[^,]*rel="next"/.exec(link ?? "") ?? [];
  return decodeURIComponent(cursor);
}

/** The `code` and `message` of an Error body; both empty for other bodies. @param {string} text */
export function readProblem(text) {
  try {
    const { code = "", message = "" } = JSON.parse(text);
    return { code: String(code), message: String(message) };
  } catch {
    return { code: "", message: "" };
  }
}

/**
 * The names that a message about faults mentions.
 * @param {string} message
 * @param {readonly string[]} names
 */
export function namesIn(message, names) {
  const words = new Set(message.toLowerCase().match(/[a-z][\w-]*/g));
  return names.filter((name) => words.has(name.toLowerCase()));
}

/** The position in `text` of the line and column that a message names; undefined if it names none. @param {string} message @param {string} text */
export function placeIn(message, text) {
  const [, line, column] = /\bline (\d+), column (\d+)/.exec(message) ?? [];
  if (line === undefined) return undefined;
  const before = text.split("\n").slice(0, Number(line) - 1);
  return before.reduce((sum, { length }) => sum + length + 1, 0) + Number(column) - 1;
}

/** Seconds in words. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 100) return `${seconds} s`;
  return seconds < 6_000 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}

/** The beginning of the key, with the rest hidden. @param {string} key */
export function maskKey(key) {
  return key.length > 12 ? `${key.slice(0, 12)}****` : key;
}
