// deno-coverage-ignore-file -- runs in a browser, where tests/browser/ shows what it does
/// <reference lib="dom" />
import { readProblem } from "./answer.ts";
import { say } from "./dom.ts";
import type { ConsoleRequest } from "./request.ts";

/** What came of a request. */
export interface Exchange {
  /** Such as `200 OK`, or `No answer`. */
  readonly status: string;
  readonly headers: Headers;
  readonly body: string;
  /** How long it took, in ms. */
  readonly time: number;
  /** The `code` of an error; empty where there is none. */
  readonly code: string;
  /** What to tell the visitor where it failed, or made a key. */
  readonly message: string;
  /** The key that it made; empty where it made none. */
  readonly newKey: string;
  /** For how many seconds nothing more should be sent. */
  readonly wait: number;
}

/** Sends the request and reads all of the answer. */
export async function exchange({ method, url, headers, body }: ConsoleRequest): Promise<Exchange> {
  const begun = performance.now();
  say("Sending");
  try {
    const response = await fetch(url, {
      method,
      headers: headers.map(([name, value]): [string, string] => [name, value]),
      body: body ?? null,
      // The browser's own cache would answer in the service's place.
      cache: "no-store",
      credentials: "omit",
      // The service itself gives up earlier.
      signal: AbortSignal.timeout(30_000),
    });
    const text = await response.text();
    const isRefused = response.status === 429 || response.status === 503;
    // The OpenAPI document has keys, too: as examples.
    const made = response.status === 201 ? text : "";
    const newKey = /"apiKey":"(\w+)"/.exec(made)?.[1] ?? "";
    const { code, message } = readProblem(response.ok ? "" : text);
    return {
      status: `${response.status} ${response.statusText}`.trim(),
      headers: response.headers,
      body: text,
      time: performance.now() - begun,
      code,
      message: newKey === "" ? message : "This is your new key. It is shown only this once: copy it now.",
      newKey,
      wait: isRefused ? Number(response.headers.get("retry-after")) : 0,
    };
  } catch {
    // Such a header is refused before anything is sent.
    const isUnsendable = headers.some(([, value]) => /[^\t\x20-\x7e\x80-\xff]/.test(value));
    const again = method === "GET"
      ? "then send it again."
      : "and whether it has happened all the same, before you send it again.";
    return {
      status: "No answer",
      headers: new Headers(),
      body: "",
      time: performance.now() - begun,
      code: "",
      message: isUnsendable
        ? "It was not sent: a header, such as that of the key, has a character that none may have."
        : `No answer came. See whether you are online and the service runs, ${again}`,
      newKey: "",
      wait: 0,
    };
  }
}
