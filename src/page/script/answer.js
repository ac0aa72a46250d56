// @ts-check
/// <reference lib="dom" />
// The answer: a response, an example of one, or the outcome of a race.

import { byId, create, mark, part, startCopy, write } from "./document.js";
import { tally } from "./limits.js";
import { lineOf } from "./request.js";
import { duration, jsonPieces, nextCursor } from "./text.js";

/**
 * @typedef {import("./limits.js").Finish} Finish
 * @typedef {import("./limits.js").Minute} Minute
 * @typedef {import("./request.js").Answer} Answer
 * @typedef {import("./request.js").Call} Call
 * @typedef {object} Outcome What is shown.
 * @property {string} kind
 * @property {string[][]} head Texts, each after its class name.
 * @property {string} [message]
 * @property {string} [code] Code of an error, which links to its advice.
 * @property {string} [advice]
 * @property {string} [body]
 * @property {Headers} [headers]
 * @property {boolean} [isFolded] Whether the body is shown with the headers, because the message already says it.
 */

/** The body that is shown, as it was received. */
let shownBody = "";

/** Makes the button copy the body. */
export function startAnswer() {
  startCopy(part("copy-answer"), () => shownBody);
}

/** @param {Outcome} outcome */
function show(
  { kind, head, message = "", code = "", advice = "", body = "", headers = new Headers(), isFolded },
) {
  shownBody = body;
  part("answer").dataset.kind = kind;
  const pieces = head.map(([name = "", text = ""]) => create(name === "" ? "span" : "b", name, text));
  part("answer-head").replaceChildren(...pieces.flatMap((piece) => [piece, " "]));
  write(part("answer-message"), message);
  const link = byId("answer-code", HTMLAnchorElement);
  const row = document.getElementById(`error-${code}`);
  write(link, row ? code : "");
  mark(link, "href", `#error-${code}`);
  write(part("answer-todo"), advice);
  const isJson = headers.get("content-type")?.startsWith("application/json");
  const tokens = (isJson ? jsonPieces(body) : [["", body]]).map(([kind = "", text = ""]) =>
    create("span", kind, text)
  );
  part("answer-body").replaceChildren(...(isFolded ? [] : tokens));
  part("answer-raw").replaceChildren(...(isFolded ? tokens : []));
  const rows = [...headers].flatMap(([name, value]) => [create("dt", "", name), create("dd", "", value)]);
  const details = byId("answer-headers", HTMLDetailsElement);
  details.hidden = rows.length === 0 || kind === "example";
  details.querySelector("summary")?.replaceChildren(
    `${isFolded ? "Body and " : ""}${rows.length / 2} headers`,
  );
  details.querySelector("dl")?.replaceChildren(...rows);
  part("copy-answer").hidden = body === "" || kind === "example";
  part("first-item").hidden = body !== "[]" || kind === "example";
  const next = byId("next-page", HTMLButtonElement);
  next.value = nextCursor(headers.get("link"));
  if (next.value === "" && document.activeElement === next) part("answer").focus();
}

/**
 * Shows a response.
 * @param {Answer} answer
 * @param {Call} call Its request.
 * @param {boolean} isTold Whether the form for the key tells the message.
 */
export function showAnswer(answer, call, isTold) {
  const { status, text, headers, body, ms, code, message, newKey } = answer;
  const hasBody = status !== 204 && status !== 304;
  show({
    kind: status === 429 ? "429" : `${status}`.slice(0, 1),
    head: [
      ...(status === 0 ? [["status", text]] : [["status", `${status}`], ["", text]]),
      ["", `${ms} ms · ${lineOf(call)}`],
    ],
    message: isTold
      ? ""
      : newKey === ""
      ? message
      : "This response has your new key. It is shown only once: copy it.",
    code,
    advice: isTold
      ? ""
      : body === "[]"
      ? "The list is empty."
      : hasBody
      ? adviceOn(answer)
      : "There is no body.",
    body: hasBody ? body : "",
    headers,
    isFolded: message !== "",
  });
}

/** Shows the example of a response, before the first call. @param {DOMStringMap} operation */
export function showExample({ status = "", example = "" }) {
  const headers = new Headers({ "content-type": "application/json" });
  const head = example === ""
    ? [["", "The response appears here."]]
    : [["status", status], ["", "an example, until your first call"]];
  show({ kind: "example", head, body: example, headers });
}

/** Shows a race. @param {readonly Finish[]} finishes @param {Minute} before The minute before it. @param {number} ms */
export function showRace(finishes, before, ms) {
  const left = before.limit - before.used;
  const outcome = tally(finishes, (reset) => reset === before.reset ? left : before.limit);
  show({
    kind: "race",
    head: [
      ["ok", `${outcome.answered}`],
      ["", "admitted,"],
      ["refused", `${outcome.refused}`],
      ["", "refused,"],
      ["over", outcome.over ? `${outcome.over}` : "none"],
      ["", "over,"],
      ["", `in ${ms} ms`],
    ],
    message: [
      `${finishes.length} requests at once, with ${left} left this minute.`,
      ...(outcome.otherMinute ? [`${outcome.otherMinute} of them arrived in another minute.`] : []),
      ...(outcome.lost ? [`${outcome.lost} got 503 or no response.`] : []),
    ].join(" "),
    advice:
      "However many arrive at once, exactly as many as the minute has left are admitted. Clients that keep sending " +
      "after a 429 are banned. This page waits instead.",
  });
}

/** What the answer says in words. */
export function wordsOfAnswer() {
  return ["head", "message", "advice"].map((name) => part(`answer-${name}`).textContent.trim());
}

/** The advice in the table of errors, except what the message already says. @param {Answer} answer */
function adviceOn({ code, message, wait }) {
  const advice = document.getElementById(`error-${code}`)?.querySelector("[data-todo]")?.textContent ?? "";
  if (message.includes("Try again in ")) return advice.replace("Try again after Retry-After. ", "");
  return wait > 0 ? advice.replace("Retry-After", `Retry-After (${duration(wait)})`) : advice;
}

/** Scrolls the status into view, with some of the content below it. */
export function revealAnswer() {
  const { top, bottom } = part("answer-head").getBoundingClientRect();
  if (top < 0 || bottom > innerHeight * 0.75) part("answer").scrollIntoView({ block: "nearest" });
}
