// @ts-check
// Requests as code that one keeps: a body is as it was typed, and a key for retries is new each time.

/** @typedef {import("./request.js").Call} Call */

/** Languages of samples, by their values. */
export const LANGUAGES = { curl: "curl", javascript: "JavaScript", python: "Python" };
/** Stands for the API key in code. */
export const KEY_PLACEHOLDER = "YOUR_KEY";
/** Stands for the page's origin in code. The script replaces it. */
export const ORIGIN_PLACEHOLDER = "http://THIS_HOST";
/** Stands for a new UUID in a header. */
export const FRESH = "a new UUID";

/** A text in a shell. @param {string} text */
export function inShell(text) {
  return "'" + text.replaceAll("'", "'\\''") + "'";
}

/** A text in JavaScript and Python, in the quotes that need fewer escapes. @param {string} text */
export function quoted(text) {
  const literal = JSON.stringify(text);
  const isShorter = text.split('"').length > text.split("'").length;
  return isShorter ? `'${literal.slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'` : literal;
}

/**
 * Writes the request for `curl`, in `javascript` or in `python`.
 * @param {string} language
 * @param {Call} call
 */
export function sample(language, call) {
  const { method, url, headers, body } = call;
  if (language === "javascript") return javascript(call);
  if (language === "python") return python(call);
  const isImplied = method === (body === "" ? "GET" : "POST");
  return [
    (isImplied ? "curl -i " : `curl -i -X ${method} `) + inShell(url),
    ...headers.map(([name, value]) =>
      "-H " + (value === FRESH ? `"${name}: $(uuidgen)"` : inShell(`${name}: ${value}`))
    ),
    ...(body === "" ? [] : [`--data-raw ${inShell(body)}`]),
  ].join(" \\\n  ");
}

/** @param {Call} call */
export function javascript({ method, url, headers, body }) {
  const pairs = headers.map(([name = "", value = ""]) =>
    `    ${/\W/.test(name) ? quoted(name) : name}: ${
      value === FRESH ? "crypto.randomUUID()" : quoted(value)
    },`
  );
  const raw = body.includes("\\") ? "String.raw" : "";
  const literal = /`|\$\{|\\$/.test(body) ? quoted(body) : `${raw}\`${body}\``;
  const members = [
    ...(method === "GET" ? [] : [`  method: ${quoted(method)},`]),
    ...(pairs.length > 0 ? ["  headers: {", ...pairs, "  },"] : []),
    ...(body === "" ? [] : [`  body: ${literal},`]),
  ];
  const options = members.length > 0 ? [", {", ...members, "});"].join("\n") : ");";
  return `const response = await fetch(${
    quoted(url)
  }${options}\nconsole.log(response.status, await response.text());`;
}

/** @param {Call} call */
export function python({ method, url, headers, body }) {
  const isFresh = headers.flat().includes(FRESH);
  const pairs = headers.map(([name = "", value = ""]) =>
    `        ${quoted(name)}: ${value === FRESH ? "str(uuid.uuid4())" : quoted(value)},`
  );
  const raw = body.includes("\\") ? "r" : "";
  const literal = /"""|["\\]$/.test(body) ? quoted(body) : `${raw}"""${body}"""`;
  return [
    "import json",
    ...(isFresh ? ["import uuid"] : []),
    "from urllib.error import HTTPError",
    "from urllib.request import Request, urlopen",
    "",
    "request = Request(",
    `    ${quoted(url)},`,
    `    method=${quoted(method)},`,
    ...(pairs.length > 0 ? ["    headers={", ...pairs, "    },"] : []),
    ...(body === "" ? [] : [`    data=${literal}.encode(),`]),
    ")",
    "try:",
    "    with urlopen(request) as response:",
    "        print(response.status, response.read().decode())",
    "except HTTPError as error:",
    "    problem = json.load(error)",
    '    print(error.code, problem["code"], problem["message"])',
  ].join("\n");
}
