// @ts-check
// The operators' page without its elements: places in its address, rows, and the requests of its forms.

import { sentences } from "./answer.js";
import { encoded } from "./request.js";

/**
 * @typedef {import("../operators.ts").Column} Column
 * @typedef {import("../operators.ts").Form} Form
 * @typedef {import("../operators.ts").Input} Input
 * @typedef {Form & { view: import("../operators.ts").View }} List
 * @typedef {Readonly<Record<string, unknown>>} Row
 * @typedef {{ list: List, params: Readonly<Record<string, string>>, query: string }} Place Parameters are encoded.
 */

/** Number of prints of a meter. */
export const METER_PRINTS = 10;

/** The lists among forms. @param {readonly Form[]} forms @returns {List[]} */
export function listsIn(forms) {
  return forms.flatMap((form) => form.view ? [{ ...form, view: form.view }] : []);
}

/**
 * The list to which the hash of an address leads, such as `#/operator/v1/accounts?limit=2`.
 * @param {readonly Form[]} forms
 * @param {string} hash
 * @returns {Place | undefined}
 */
export function placeOf(forms, hash) {
  const [path = "", query = ""] = hash.slice(1).split("?");
  for (const list of listsIn(forms)) {
    const pattern = list.path.replaceAll(/\{(\w+)\}/g, "(?<$1>[^/]+)");
    const found = path.match(`^${pattern}$`);
    if (found) return { list, params: { ...found.groups }, query };
  }
  return undefined;
}

/** A path with its parameters. @param {string} path @param {Readonly<Record<string, string>>} params */
export function pathWith(path, params) {
  return path.replaceAll(/\{(\w+)\}/g, (param, name) => params[name] ?? param);
}

/** The parameter of a path that tells a row of the list at another path. @param {string} list @param {string} path */
export function rowParamOf(list, path) {
  return path.startsWith(list) ? /^\/\{(\w+)\}/.exec(path.slice(list.length))?.[1] : undefined;
}

/**
 * The parameters of a row's operations, encoded: those of its list, and its own.
 * @param {Place} place
 * @param {string} path
 * @param {string} key
 */
export function paramsOf({ list, params }, path, key) {
  const own = rowParamOf(list.path, path);
  return own === undefined ? params : { ...params, [own]: encoded(key) };
}

/**
 * The query of the next page; undefined on the last one. The rest of the link may be of another origin.
 * @param {string | null} link
 */
export function nextQuery(link) {
  return /\?([^>]*)>; *rel="next"/.exec(link ?? "")?.[1];
}

/** Why an answer has no JSON of the service; empty if it has. @param {import("./request.js").Answer} answer */
export function faultOf({ status, text, message, headers }) {
  const isOwn = status === 200 && headers.get("content-type")?.includes("json");
  return isOwn ? "" : sentences(
    `${status || ""} ${text}`,
    status === 200 ? "This is not an answer of the service" : message,
  );
}

/** Rows in a body. Integers that JavaScript would round stay text. @param {string} text @returns {Row[]} */
export function rowsIn(text) {
  /** @type {unknown} */
  const rows = JSON.parse(text, (_, value, { source = "" } = {}) => {
    const isRounded = Number.isInteger(value) && !Number.isSafeInteger(value);
    return isRounded ? source : value;
  });
  return Array.isArray(rows) ? rows : [];
}

/** The value of a row to which names lead. @param {unknown} row @param {readonly string[]} path @returns {unknown} */
export function valueAt(row, path) {
  return path.reduce((value, name) => Object(value)[name], row);
}

/**
 * A value in words; empty if there is none. Times are those of the service, UTC.
 * @param {unknown} value
 * @param {Column["kind"]} kind
 */
export function wordsFor(value, kind) {
  if (value === null || value === undefined) return "";
  const time = kind === "time" ? Date.parse(String(value)) : NaN;
  if (!Number.isNaN(time)) {
    return new Date(time).toLocaleString("en-GB", {
      dateStyle: "medium",
      timeStyle: "short",
      timeZone: "UTC",
    });
  }
  if (typeof value === "number") return value.toLocaleString("en", { useGrouping: kind === "meter" });
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value) && value.every((item) => typeof item !== "object")) return value.join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The words of a column in a row. @param {Row} row @param {Column} column */
export function cellOf(row, { path, limit, kind }) {
  const text = wordsFor(valueAt(row, path), kind);
  return kind === "meter" && text ? `${text} of ${wordsFor(valueAt(row, limit), kind)}` : text;
}

/**
 * The columns that tell rows apart, and what all rows have in common. Columns without values are left out of both.
 * @param {readonly Column[]} columns
 * @param {readonly Row[]} rows
 */
export function columnsFor([first, ...others], rows) {
  const cells = others.map((column) => ({ column, texts: new Set(rows.map((row) => cellOf(row, column))) }));
  const same = rows.length > 1 ? cells.filter(({ texts }) => texts.size === 1) : [];
  const told = cells.filter((cell) => !same.includes(cell) && [...cell.texts].some(Boolean));
  return {
    columns: [...first ? [first] : [], ...told.map(({ column }) => column)],
    same: same.flatMap(({ column, texts: [text] }) => text ? [`${column.label}: ${text}`] : []),
  };
}

/** How many prints of a meter are used. @param {Row} row @param {Column} column */
export function printsUsed(row, { path, limit }) {
  const [used, of] = [path, limit].map((path) => Number(valueAt(row, path)));
  const share = (used ?? 0) / (of || 1);
  return share > 0 && share < 1 ? Math.ceil(share * (METER_PRINTS - 1)) : METER_PRINTS * Number(share >= 1);
}

/**
 * The body of a form: a member for each field that is not empty. Null is one for those that may be.
 * @param {readonly Input[]} inputs
 * @param {Readonly<Record<string, string>>} values
 */
export function bodyOf(inputs, values) {
  const members = inputs.filter(({ place }) => place === "body").flatMap(({ name, isText, isNullable }) => {
    const value = values[name] ?? "";
    if (value.trim() === "") return [];
    return `${JSON.stringify(name)}:${
      !isText || (isNullable && value === "null") ? value : JSON.stringify(value)
    }`;
  });
  return `{${members.join(",")}}`;
}
