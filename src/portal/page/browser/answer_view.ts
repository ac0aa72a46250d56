// deno-coverage-ignore-file -- runs in a browser, where tests/browser/ shows what it does
/// <reference lib="dom" />
import { jsonPieces, nextCursor, sortHeaders } from "./answer.ts";
import { byId, element, say } from "./dom.ts";
import type { Exchange } from "./exchange.ts";

/** Shows what came of a request to this operation, and says it. */
export function showAnswer(
  { status, headers, body, time, code, message }: Exchange,
  operation: string,
): void {
  const region = byId("answer", HTMLElement);
  const [kind = "none"] = /^429|^\d/.exec(status) ?? [];
  region.dataset.kind = kind;
  byId("answer-status", HTMLElement).textContent = status;
  byId("answer-time", HTMLElement).textContent = `${Math.max(1, Math.round(time))} ms, ${operation}`;
  byId("answer-advice", HTMLElement).textContent = adviceOn(code) || message;
  const { first, rest } = sortHeaders(headers);
  byId("answer-headers", HTMLElement).replaceChildren(...headerRows(first));
  byId("answer-rest", HTMLElement).replaceChildren(...headerRows(rest));
  const details = byId("answer-more", HTMLDetailsElement);
  details.hidden = rest.length === 0;
  byId("answer-more-label", HTMLElement).textContent = `${rest.length} more headers`;
  byId("answer-body", HTMLElement).replaceChildren(...bodyPieces(body, headers));
  region.hidden = false;
  region.scrollIntoView({ block: "nearest" });
  say(`${status}, in ${Math.round(time)} milliseconds. ${message}`);
  const next = byId("next-page", HTMLButtonElement);
  next.value = nextCursor(headers.get("link"));
  if (next.value === "" && document.activeElement === next) region.focus();
  next.hidden = next.value === "";
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
