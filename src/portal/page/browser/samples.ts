import type { ConsoleRequest } from "./request.ts";

/** The request in the language of that name; as it is sent, if it is none of them. */
export function sample(language: string, request: ConsoleRequest): string {
  switch (language) {
    case "curl":
      return curlSample(request);
    case "javascript":
      return javascriptSample(request);
    case "python":
      return pythonSample(request);
    default:
      return httpSample(request);
  }
}

/** The request as it is sent. */
export function httpSample({ method, url, headers, body }: ConsoleRequest): string {
  const lines = headers.map(([name, value]) => `${name}: ${value}`);
  return [`${method} ${url}`, ...lines, ...(body === undefined ? [] : ["", body])].join("\n");
}

/** The request as a command of a POSIX shell. */
export function curlSample({ method, url, headers, body }: ConsoleRequest): string {
  const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
  const implied = body === undefined ? "GET" : "POST";
  return [
    `curl -i${method === implied ? "" : ` -X ${method}`} ${quote(url)}`,
    ...headers.map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`--data-raw ${quote(body)}`]),
  ].join(" \\\n  ");
}

/** The request as a JavaScript module. */
export function javascriptSample({ method, url, headers, body }: ConsoleRequest): string {
  return [
    `const response = await fetch(${quoteText(url)}, {`,
    `  method: ${quoteText(method)},`,
    ...(headers.length === 0 ? [] : [
      "  headers: {",
      ...headers.map(([name, value]) => `    ${quoteText(name)}: ${quoteText(value)},`),
      "  },",
    ]),
    ...(body === undefined ? [] : [`  body: ${quoteText(body)},`]),
    "});",
    "console.log(response.status, await response.text());",
  ].join("\n");
}

/** The request as a Python program, on the standard library alone. */
export function pythonSample({ method, url, headers, body }: ConsoleRequest): string {
  return [
    "from urllib.error import HTTPError",
    "from urllib.request import Request, urlopen",
    "",
    "request = Request(",
    `    ${quoteText(url)},`,
    `    method=${quoteText(method)},`,
    ...(headers.length === 0 ? [] : [
      "    headers={",
      ...headers.map(([name, value]) => `        ${quoteText(name)}: ${quoteText(value)},`),
      "    },",
    ]),
    ...(body === undefined ? [] : [`    data=${quoteText(body)}.encode(),`]),
    ")",
    "try:",
    "    response = urlopen(request)",
    "except HTTPError as error:",
    "    response = error",
    "print(response.status, response.read().decode())",
  ].join("\n");
}

/** The text as a literal of JavaScript and Python, which agree on what JSON escapes. */
export function quoteText(text: string): string {
  return text.includes('"') && !/['\\]/.test(text) ? `'${text}'` : JSON.stringify(text);
}

/** The text with all but the beginning of the key hidden from onlookers; what is shorter is no key yet. */
export function maskKey(text: string, key: string): string {
  return key.length <= 11 ? text : text.replaceAll(key, `${key.slice(0, 11)}…`);
}
