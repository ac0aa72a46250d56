// @ts-check
// Requests: built from the fields of a form, written as samples, and sent.

import { readProblem } from "./text.js";

/**
 * @typedef {{ method: string, url: string, headers: [name: string, value: string][], body: string }} Call
 *   A request. An empty body means none.
 * @typedef {{ status: number, text: string, headers: Headers, body: string, ms: number, code: string,
 *   message: string, newKey: string, wait: number }} Answer A response. Status 0 means none; `text` says so. `wait` is
 *   in seconds.
 */

/** Placeholder of the API key in samples. */
export const KEY_PLACEHOLDER = "YOUR_KEY_FROM_ABOVE";
/** Placeholder of the page's origin in samples, which the script replaces. */
export const ORIGIN_PLACEHOLDER = "http://THIS_HOST";
/** Longer than the service's own timeout, in ms. */
const TIMEOUT = 30_000;

/**
 * Builds a request from the fields of the form. Empty fields are left out.
 * @param {{ base: string, method: string, path: string, bodyType: string, key: string }} target
 * @param {readonly { name: string, place: string, value: string }[]} fields
 * @param {string} [body]
 * @returns {Call}
 */
export function buildRequest({ base, method, path, bodyType, key }, fields, body = "") {
  const at = (/** @type {string} */ wanted) =>
    fields.filter(({ place, value }) => place === wanted && (value !== "" || place === "path"));
  const encode = (/** @type {string} */ value) => encodeURIComponent(value.toWellFormed());
  const pathname = at("path").reduce(
    (text, { name, value }) => text.replace(`{${name}}`, () => encode(value)),
    path,
  );
  const query = at("query").map(({ name, value }) => `${name}=${encode(value)}`).join("&");
  /** @type {Call["headers"]} */
  const headers = at("header").map(({ name, value }) => [name, value]);
  if (body !== "") headers.unshift(["Content-Type", bodyType]);
  if (key !== "") headers.unshift(["Authorization", `Bearer ${key}`]);
  return { method, url: base + pathname + (query && `?${query}`), headers, body };
}

/**
 * Writes the request for `curl`, in `javascript` or `python`, or for any other language as HTTP.
 * @param {string} language
 * @param {Call} call
 * @returns {string}
 */
export function sample(language, { method, url, headers, body }) {
  const shell = (/** @type {string} */ text) => `'${text.replaceAll("'", `'\\''`)}'`;
  // A JSON string is a valid literal in JavaScript and Python.
  const quote = (/** @type {string} */ text) =>
    text.includes('"') && !/['\\\n]/.test(text) ? `'${text}'` : JSON.stringify(text);
  const pairs = (/** @type {string} */ indent) =>
    headers.map(([name, value]) => `${indent}${quote(name)}: ${quote(value)},`);
  if (language === "curl") {
    const implied = body === "" ? "GET" : "POST";
    return [
      `curl -i${method === implied ? "" : ` -X ${method}`} ${shell(url)}`,
      ...headers.map(([name, value]) => `-H ${shell(`${name}: ${value}`)}`),
      ...(body === "" ? [] : [`--data-raw ${shell(body)}`]),
    ].join(" \\\n  ");
  }
  if (language === "javascript") {
    return [
      `const response = await fetch(${quote(url)}, {`,
      `  method: ${quote(method)},`,
      ...(headers.length === 0 ? [] : ["  headers: {", ...pairs("    "), "  },"]),
      ...(body === "" ? [] : [`  body: ${quote(body)},`]),
      "});",
      "console.log(response.status, await response.text());",
    ].join("\n");
  }
  if (language === "python") {
    return [
      "from urllib.error import HTTPError",
      "from urllib.request import Request, urlopen",
      "",
      "request = Request(",
      `    ${quote(url)},`,
      `    method=${quote(method)},`,
      ...(headers.length === 0 ? [] : ["    headers={", ...pairs("        "), "    },"]),
      ...(body === "" ? [] : [`    data=${quote(body)}.encode(),`]),
      ")",
      "try:",
      "    response = urlopen(request)",
      "except HTTPError as error:",
      "    response = error",
      "print(response.status, response.read().decode())",
    ].join("\n");
  }
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  return [`${method} ${url}`, ...lines, ...(body === "" ? [] : ["", body])].join("\n");
}

/** The method and path of a request. @param {Call} call */
export function lineOf({ method, url }) {
  const { pathname, search } = new URL(url);
  return `${method} ${pathname}${search}`;
}

/** Sends the request and reads the whole response. @param {Call} call @returns {Promise<Answer>} */
export async function exchange({ method, url, headers, body }) {
  const begun = performance.now();
  const elapsed = () => Math.max(1, Math.round(performance.now() - begun));
  try {
    const response = await fetch(url, {
      method,
      headers,
      body: body === "" ? null : body,
      // Bypasses the browser's cache.
      cache: "no-store",
      credentials: "omit",
      signal: AbortSignal.timeout(TIMEOUT),
    });
    const text = await response.text();
    const { status } = response;
    // Only in a 201, because the OpenAPI document has keys as examples.
    const [, newKey = ""] = /"apiKey":"(\w+)"/.exec(status === 201 ? text : "") ?? [];
    const isRefused = status === 429 || status === 503;
    return {
      status,
      text: response.statusText,
      headers: response.headers,
      body: text,
      ms: elapsed(),
      ...readProblem(response.ok ? "" : text),
      newKey,
      wait: isRefused ? Number(response.headers.get("retry-after")) : 0,
    };
  } catch {
    // fetch() refuses an invalid header before it sends anything.
    const [unsendable] = headers.find(([, value]) => /[^\t\x20-\x7e\x80-\xff]/.test(value)) ?? [];
    const again = method === "GET"
      ? "Then send the request again."
      : "Before you send the request again, check whether it took effect.";
    const [text, message] = unsendable === undefined
      ? ["No response", `Check that you are online and that the service is running. ${again}`]
      : ["Not sent", `${unsendable} contains a character that no header can carry.`];
    return {
      status: 0,
      text,
      headers: new Headers(),
      body: "",
      ms: elapsed(),
      code: "",
      message,
      newKey: "",
      wait: 0,
    };
  }
}
