// deno-coverage-ignore-file -- runs in a browser, where tests/browser/ shows what it does
/// <reference lib="dom" />
import { jsonPieces, sortHeaders } from "./answer.ts";
import { byId, element } from "./dom.ts";
import type { Exchange } from "./exchange.ts";

/** Shows what came of a request to this operation. */
export function showAnswer(answer: Exchange, operation: string): void {
  const { status, headers, body, time, code, message } = answer;
  const kind = status === undefined ? "none" : status.startsWith("429") ? "429" : `${status.charAt(0)}xx`;
  byId("answer", HTMLElement).dataset.kind = kind;
  byId("answer-status", HTMLElement).textContent = status ?? "No answer";
  byId("answer-time", HTMLElement).textContent = `${Math.max(1, Math.round(time))} ms, ${operation}`;
  byId("answer-advice", HTMLElement).textContent = adviceOn(code) || message;
  const { first, rest } = sortHeaders(headers);
  byId("answer-headers", HTMLElement).replaceChildren(...headerRows(first));
  byId("answer-rest", HTMLElement).replaceChildren(...headerRows(rest));
  const details = byId("answer-more", HTMLDetailsElement);
  details.hidden = rest.length === 0;
  byId("answer-more-label", HTMLElement).textContent = `${rest.length} more headers`;
  byId("answer-body", HTMLElement).replaceChildren(...bodyPieces(body, headers));
}

/** What to do about an error, as the table of errors has it. */
export function adviceOn(code: string): string {
  return document.getElementById(`error-${code}`)?.querySelector("[data-todo]")?.textContent ?? "";
}

/** Headers as terms and their values. */
export function headerRows(headers: readonly [string, string][]): HTMLElement[] {
  return headers.flatMap(([name, value]) => [element("dt", "", name), element("dd", "", value)]);
}

/** The body in colours, if it is JSON. */
export function bodyPieces(body: string, headers: Headers): HTMLElement[] {
  if (body === "") return [element("span", "plain", "No body.")];
  if (!headers.get("content-type")?.startsWith("application/json")) return [element("span", "", body)];
  return jsonPieces(body).map(({ text, kind }) => element("span", kind, text));
}
