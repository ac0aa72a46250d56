// @ts-check
// Limits: what the headers of responses say about them, and the print that each request of a minute leaves.

/**
 * @typedef {{ name: string, limit: number, left: number, seconds: number }} Limit A limit, which resets in `seconds`.
 * @typedef {{ kind: "ok" | "bad" | "refused", text: string }} Mark The outcome of a request of this page.
 * @typedef {{ reset: number, limit: number, used: number, marks: readonly Mark[] }} Minute
 *   A window: the service's count, and the outcomes of this page's requests in order of arrival.
 * @typedef {{ kind: "" | "ok" | "bad" | "other" | "refused", text: string }} Print What a print shows, and says.
 * @typedef {{ status: number, reset: number }} Finish The outcome of a request of the race. Status 0 means no response.
 */

/** No race is offered while the minute has more requests left than this, so that races stay small. */
const MOST_LEFT = 68;
const MOST_PRINTS = 60;

/** The limits in the headers of a response. @param {Headers} headers @returns {Limit[]} */
export function readLimits(headers) {
  const policy = [...(headers.get("ratelimit-policy") ?? "").matchAll(/"(\w+)";q=(\d+)/g)];
  const limits = new Map(policy.map(([, name, limit]) => [name, Number(limit)]));
  return [...(headers.get("ratelimit") ?? "").matchAll(/"(\w+)";r=(\d+);t=(\d+)/g)].map(
    ([, name = "", left, seconds]) => ({
      name,
      limit: limits.get(name) ?? 0,
      left: Number(left),
      seconds: Number(seconds),
    }),
  );
}

/**
 * When the minute of a response ends, in Unix seconds by the service's clock. `X-RateLimit-Reset` is the end of the
 * window that has fewer requests left.
 * @param {Headers} headers
 */
export function minuteReset(headers) {
  const limits = readLimits(headers);
  const shown = Number(headers.get("x-ratelimit-limit"));
  const seconds = (/** @type {Limit | undefined} */ limit) => limit?.seconds ?? 0;
  const minute = limits.find(({ name }) => name === "minute");
  const meant = minute?.limit === shown ? minute : limits.find(({ limit }) => limit === shown);
  return Number(headers.get("x-ratelimit-reset")) - seconds(meant) + seconds(minute);
}

/**
 * Updates the minute after a response. A response from a later minute starts a new one. One from an earlier minute is
 * ignored.
 * @param {Minute | undefined} minute
 * @param {{ status: number, headers: Headers }} answer
 * @param {string} text What its print says.
 * @returns {Minute | undefined}
 */
export function countAnswer(minute, { status, headers }, text) {
  const limit = readLimits(headers).find(({ name }) => name === "minute");
  if (limit === undefined) return minute;
  const reset = minuteReset(headers);
  if (minute !== undefined && reset < minute.reset) return minute;
  const { used = 0, marks = [] } = reset === minute?.reset ? minute : {};
  const kind = status === 429 ? "refused" : status < 400 ? "ok" : "bad";
  return {
    reset,
    limit: limit.limit,
    used: Math.max(used, limit.limit - limit.left),
    marks: [...marks, { kind, text }],
  };
}

/** The number of marks of this kind. @param {Minute} minute @param {Mark["kind"]} wanted */
export function countOf({ marks }, wanted) {
  return marks.filter(({ kind }) => kind === wanted).length;
}

/**
 * The prints of a minute: admitted requests, those of other clients first, and refused ones.
 * @param {Minute} minute
 * @param {number} [pending] Number of requests of this page that have no response yet.
 * @returns {{ per: number, others: number, admitted: Print[], refused: Print[] }} `per` is the number of requests per
 *   print.
 */
export function printsOf({ limit, used, marks }, pending = 0) {
  const per = Math.max(1, Math.ceil(limit / MOST_PRINTS));
  const refusals = marks.filter(({ kind }) => kind === "refused");
  const own = marks.filter(({ kind }) => kind !== "refused");
  const others = Math.max(0, used - own.length - pending);
  const refused = Array.from(
    { length: Math.min(MOST_PRINTS, Math.ceil(refusals.length / per)) },
    (_, index) => together(refusals.slice(index * per, (index + 1) * per)),
  );
  const admitted = Array.from({ length: Math.ceil(limit / per) }, (_, index) => {
    const [from, to] = [index * per - others, (index + 1) * per - others];
    const shown = own.slice(Math.max(0, from), Math.max(0, to));
    if (shown.length > 0) return together(shown);
    return from < 0 ? print("other", "another client") : print("", "not used");
  });
  return { per, others, admitted, refused };
}

/** One print for several marks. A failure shows. @param {readonly Mark[]} marks @returns {Print} */
function together(marks) {
  const [first] = marks;
  const text = marks.length === 1 ? first?.text : `${marks.length} requests, the first ${first?.text}`;
  return print(marks.find(({ kind }) => kind !== "ok")?.kind ?? "ok", text ?? "");
}

/** @param {Print["kind"]} kind @param {string} text @returns {Print} */
function print(kind, text) {
  return { kind, text };
}

/**
 * The number of requests of a race: all that the minute has left and a few more, but too few for a ban. 0 if there can
 * be none now. The note says why, or what a race does.
 * @param {Minute | undefined} current
 * @param {readonly Limit[]} limits
 * @returns {{ size: number, note: string }}
 */
export function raceOf(current, limits) {
  const [minute, day] = ["minute", "day"].map((wanted) => limits.find(({ name }) => name === wanted));
  const none = (/** @type {string} */ note) => ({ size: 0, note });
  if (current === undefined || minute === undefined || day === undefined) {
    return none("Ready after your first request.");
  }
  if (countOf(current, "refused") > 0) return none("Again in the next minute.");
  if (minute.left > MOST_LEFT) return none(`Once at most ${MOST_LEFT} requests are left.`);
  const size = minute.left + Math.min(12, Math.floor(minute.limit / 5));
  if (day.left <= size) return none("Too few requests are left today.");
  return { size, note: "Sends all that are left, and a few more." };
}

/**
 * The outcome of a race, counted in the minute that most responses belong to.
 * @param {readonly Finish[]} finishes
 * @param {(reset: number) => number} leftOf Returns the remaining requests of the minute before the race.
 */
export function tally(finishes, leftOf) {
  const answers = finishes.filter(({ status }) => status > 0 && status !== 503);
  const [most = []] = [...Map.groupBy(answers, ({ reset }) => reset).values()]
    .sort((one, other) => other.length - one.length);
  const refused = most.filter(({ status }) => status === 429).length;
  const answered = most.length - refused;
  return {
    answered,
    refused,
    over: Math.max(0, answered - leftOf(most[0]?.reset ?? 0)),
    otherMinute: answers.length - most.length,
    lost: finishes.length - answers.length,
  };
}
