// @ts-check
// Requests and responses: built from the fields of a form, sent, and read.

/**
 * @typedef {{ method: string, url: string, headers: string[][], body: string }} Call
 *   A request. An empty body means none.
 * @typedef {{ status: number, text: string, headers: Headers, body: string, ms: number, code: string,
 *   message: string, field: string, newKeys: readonly string[], wait: number }} Answer A response. Status 0 means none;
 *   `text` says so. `wait` is in seconds.
 * @typedef {{ operation: string, call: Call, answer: Answer }} Entry A request of an operation, and its response.
 */

/** Longer than the service's own timeout, in ms. */
export const TIMEOUT = 30_000;

/**
 * Builds a request from the fields of a form. Empty fields are left out.
 * @param {{ base: string, method: string, path: string, type: string, key: string }} target
 * @param {readonly { name: string, place: string, value: string }[]} fields
 * @returns {Call}
 */
export function buildRequest({ base, method, path, type, key }, fields) {
  const at = Object.groupBy(fields.filter(({ value }) => value.trim() !== ""), ({ place }) => place);
  const pathname = (at["path"] ?? []).reduce(
    (text, { name, value }) => text.replace(`{${name}}`, () => encoded(value)),
    path,
  );
  const query = (at["query"] ?? []).map(({ name, value }) => `${name}=${encoded(value)}`).join("&");
  const [{ value: body } = { value: "" }] = at["body"] ?? [];
  const headers = (at["header"] ?? []).map(({ name, value }) => [name, value]);
  if (body !== "") headers.unshift(["Content-Type", type]);
  if (key !== "") headers.unshift(["Authorization", `Bearer ${key}`]);
  return { method, url: base + pathname + (query && `?${query}`), headers, body };
}

/** @param {string} value */
export function encoded(value) {
  return encodeURIComponent(value.toWellFormed());
}

/** The path and query of a request. @param {Call} call */
export function targetOf({ url }) {
  return url.replace(/^https?:\/\/[^/]*/, "");
}

/** Why a request cannot be sent as it is; empty if it can. @param {Call} call */
export function obstacleTo(call) {
  if (!call.headers.every(([, value = ""]) => /^[\t -~\x80-\xff]*$/.test(value))) {
    return "A header has a character that no header can carry.";
  }
  // A segment of dots, a backslash or a hash sign would lead to another path.
  const [path] = targetOf(call).split("?");
  return new URL(call.url).pathname === path ? "" : "A value in the path leads to another path.";
}

/**
 * Sends the request and reads the whole response, with its new API keys: the OpenAPI document has examples of keys, but
 * a GET makes none. It follows no redirect, because its key is for this service only.
 * @param {Call} call
 * @returns {Promise<Answer>}
 */
export async function exchange(call) {
  const { method, url, headers: sent, body: content } = call;
  const none = {
    status: 0,
    headers: new Headers(),
    body: "",
    newKeys: [],
    wait: 0,
    ms: 0,
    ...readProblem(""),
  };
  const message = obstacleTo(call);
  if (message) return { ...none, text: "Not sent", message };
  const begun = performance.now();
  const elapsed = () => Math.ceil(performance.now() - begun);
  try {
    const response = await fetch(url, {
      method,
      headers: Object.fromEntries(sent),
      body: content || null,
      cache: "no-store",
      redirect: "error",
      signal: AbortSignal.timeout(TIMEOUT),
    });
    const body = await response.text();
    const { status, ok, statusText: text, headers } = response;
    const newKeys = (method === "GET" ? "" : body).match(/(?<="apiKey":")\w+(?=")/g) ?? [];
    const wait = status === 429 || status === 503 ? Number(headers.get("retry-after")) : 0;
    return { status, text, headers, body, ms: elapsed(), newKeys, wait, ...readProblem(ok ? "" : body) };
  } catch {
    const isSafe = method === "GET" || sent.flat().includes("Idempotency-Key");
    const message = `Check that you are online and that the service is running. ${
      isSafe ? "It is safe to send this again." : "Check whether it took effect before you send it again."
    }`;
    return { ...none, text: "No response", message, ms: elapsed() };
  }
}

/** What an Error body says; all empty for other bodies. Codes are words. @param {string} text */
export function readProblem(text) {
  try {
    const { code = "", message = "", field = "" } = JSON.parse(text);
    return { code: /^\w+$/.test(code) ? String(code) : "", message: String(message), field: String(field) };
  } catch {
    return { code: "", message: "", field: "" };
  }
}

/** The cursor in the link to the next page; empty on the last page. @param {string | null} link */
export function nextCursor(link) {
  const [, cursor = ""] = /[?&]cursor=([^&>]+)[^,]*rel="next"/.exec(link ?? "") ?? [];
  return decodeURIComponent(cursor);
}

/**
 * JSON as indented pieces, each a text after its kind: `name` or none. Numbers are not parsed, so they keep
 * all digits.
 * @param {string} text
 * @returns {string[][]}
 */
export function jsonPieces(text) {
  const tokens = /("(?:[^"\\]|\\.)*")\s*(:?)|[[{]\s*[\]}]|[[\]{},]|[^\s"[\]{},]+/g;
  let end = "\n";
  return [...text.matchAll(tokens)].flatMap(([token, string, colon]) => {
    if (string) return colon ? [["name", string], ["", ": "]] : [["", string]];
    if (token === "[" || token === "{") return [["", token + (end += "  ")]];
    if (token === "]" || token === "}") return [["", (end = end.slice(0, -2)) + token]];
    return [["", token === "," ? token + end : token.replaceAll(/\s/g, "")]];
  });
}

/** A time in words. @param {number} ms */
export function duration(ms) {
  const seconds = Math.ceil(ms / 1_000);
  if (seconds < 100) return `${seconds} s`;
  return seconds < 6_000 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}

/** A new key for retries. `crypto.randomUUID()` needs https. */
export function freshKey() {
  return crypto.getRandomValues(new Uint32Array(4)).join("-");
}

/** A time in whole words. @param {number} ms */
export function durationInWords(ms) {
  const [number, unit = ""] = duration(ms).split(" ");
  const name = { s: "second", min: "minute" }[unit] ?? "hour";
  return `${number} ${name}${number === "1" ? "" : "s"}`;
}

/** @param {number} number */
export function count(number) {
  return number.toLocaleString("en");
}
