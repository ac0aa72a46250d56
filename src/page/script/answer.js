// @ts-check
// What an answer says, of a request or of a race. The document draws it.

import { outcomeOf, processesOf } from "./limits.js";
import { count, durationInWords, nextCursor, targetOf } from "./request.js";

/**
 * @typedef {import("./request.js").Entry} Entry
 * @typedef {import("./limits.js").Usage} Usage
 * @typedef {{ kind: string, head: [kind: string, text: string][], message: string, code?: string, todo?: string,
 *   body?: string, headers?: Headers }} Told `head` has texts, each after its class. If there is a code, the message is
 *   that of the body.
 * @typedef {{ meaning: string, advice: string, sunset: string, path: string, filled: number, isAdded: boolean,
 *   isCopied: boolean }} Known What the page knows of a request: what its status means, and what to do after its
 *   error; how many forms were filled from it; whether its key is one beside that in use; whether that is copied.
 */

/** Those texts that there are, as sentences. @param {...(string | false | undefined)} texts */
export function sentences(...texts) {
  return texts.map((text) => text && text.trim().replace(/[^.?]$/, "$&.")).filter(Boolean).join(" ");
}

/**
 * What a response says.
 * @param {Entry} entry
 * @param {Known} known
 * @returns {Told}
 */
export function toldOf({ call, answer }, { meaning, advice, sunset, filled, isAdded }) {
  const { status, text, headers, body, ms, code, message, newKeys } = answer;
  const waits = /Try again in (\d+) s\.$/.exec(message);
  return {
    kind: status === 429 ? "429" : `${status}`.slice(0, 1),
    head: [
      ["status", `${status || text}`],
      ["", [status && text, `${ms} ms`, `${call.method} ${targetOf(call)}`].filter(Boolean).join(" · ")],
    ],
    message: sentences(
      newKeys.length > 0 &&
        (isAdded ? "Copy now: keys are shown only once" : "Copy your new key: only this tab has it"),
      message.replace(/\d+ s\.$/, (time) => durationInWords(parseInt(time) * 1_000)) || meaning,
      headers.has("idempotency-replayed") && "A replay of the first response: nothing was created twice",
      filled > 0 && `These forms have its id${headers.has("etag") ? " and ETag" : ""} now`,
      isEmptyList(answer) && (/[?&](?!limit=)/.test(call.url) ? "Nothing matches" : "There are none yet"),
      sunset && status < 400 && `Deprecated: works until ${sunset}`,
    ),
    code,
    todo: waits ? advice.replace("Try again after Retry-After. ", "") : advice,
    body: status === 204 || status === 304 ? "" : body,
    headers,
  };
}

/** @param {Entry["answer"]} answer */
export function isEmptyList({ status, body }) {
  return status === 200 && body === "[]";
}

/**
 * What can follow a response.
 * @param {Entry} entry
 * @param {Known} known
 */
export function stepsOf({ call, answer }, { path, isAdded, isCopied }) {
  const { status, headers, newKeys } = answer;
  const isNew = status > 200 && status < 300 && !headers.has("idempotency-replayed");
  return {
    copiesKey: !isCopied,
    addedKey: isAdded ? newKeys.join("\n") : "",
    adds: isEmptyList(answer) || (path.includes("{") && (status === 403 || status === 404)),
    repeats: isNew && call.headers.flat().includes("Idempotency-Key"),
    tag: status === 412 ? headers.get("etag") ?? "" : "",
    cursor: nextCursor(headers.get("link")),
  };
}

/**
 * What a race says: of its requests, of the usage before and after it, and of the time that it took in ms.
 * @param {readonly Entry[]} entries
 * @param {{ before: Usage, usage: Usage | undefined, ms: number }} known
 * @returns {Told}
 */
export function raceTold(entries, { before, usage = before, ms }) {
  const groups = Map.groupBy(entries, outcomeOf);
  const [ok = [], refused = [], bad = []] = [groups.get("ok"), groups.get("refused"), groups.get("bad")];
  const failed = bad[0]?.answer;
  if (failed && bad.length === entries.length) {
    const message = sentences(failed.text, failed.message);
    return { kind: "0", head: [["status", "The race did not take place"]], message };
  }
  const could = usage.reset === before.reset ? before.left : usage.limit;
  const isPart = entries.length <= could;
  const isOneMinute = [...ok, ...refused].every((entry) => usage.entries.includes(entry));
  const processes = processesOf(ok);
  const over = isOneMinute ? Math.max(0, ok.length - could) : 0;
  const others = isOneMinute && !isPart ? could - ok.length - bad.length : 0;
  const outcome = isPart
    ? "all fit"
    : isOneMinute
    ? `exactly ${could} can succeed`
    : "a new minute began meanwhile";
  return {
    kind: "race",
    head: [
      ["ok", `${ok.length}`],
      ["", "admitted,"],
      ["refused", `${refused.length}`],
      ["", "refused,"],
      [over ? "bad" : "status", `${over || "none"}`],
      ["", "over"],
    ],
    message: sentences(
      `${entries.length} requests at once in ${ms} ms, with ${count(could)} left: ${outcome}`,
      processes.length > 1 &&
        `${ok.length} admitted by ${processes.length} processes: ${processes.join(", ")}`,
      others > 0 && `Other clients of the account took ${others}`,
      bad.length > 0 && `${bad.length} failed or got no response`,
    ),
    todo: isPart
      ? "Race again for the rest."
      : "Clients that keep sending after a 429 are banned. This page waits instead.",
  };
}
