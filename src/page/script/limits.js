// @ts-check
// Limits: what responses say about them, and what follows for prints, words and races.

import { count, duration } from "./request.js";

/**
 * @typedef {import("./request.js").Entry} Entry
 * @typedef {{ limit: number, left: number, until: number }} Window A limit, and when it has all its requests again, in
 *   ms since the epoch.
 * @typedef {Window & { reset: number, entries: readonly Entry[], day: Window }} Usage
 *   What is left of a minute, which ends at `reset` (in s by the service's clock); its requests; and the day.
 * @typedef {{ kind: string, entry: Entry | undefined }} Print How a request ended, if it was this page's.
 */

/** Maximum number of prints for one minute. */
export const MOST_PRINTS = 60;
/** Maximum number of requests of a race. */
export const MOST_RACERS = 200;
/** How many more requests than are left a race sends. */
export const EXTRA = 12;

/**
 * A window in the headers of a response.
 * @param {Headers} headers
 * @param {string} name
 * @param {number} now In ms.
 * @returns {Window | undefined}
 */
export function windowOf(headers, name, now) {
  const [, limit] = headers.get("ratelimit-policy")?.match(`"${name}";q=(\\d+)`) ?? [];
  const [, left, seconds] = headers.get("ratelimit")?.match(`"${name}";r=(\\d+);t=(\\d+)`) ?? [];
  if (!limit || !left) return undefined;
  return { limit: Number(limit), left: Number(left), until: now + Number(seconds) * 1_000 };
}

/**
 * The usage after a response. Responses may overtake each other. One from an earlier minute is ignored, and so is one
 * that describes other limits. X-RateLimit-Reset is the end of the window that has fewer requests left. Responses of
 * one minute are of one day.
 * @param {Usage | undefined} usage
 * @param {Entry} entry
 * @param {number} now
 * @returns {Usage | undefined}
 */
export function usageAfter(usage, entry, now) {
  const { headers, code } = entry.answer;
  const [minute, day] = [windowOf(headers, "minute", now), windowOf(headers, "day", now)];
  if (!minute || !day || code === "key_banned") return usage;
  const shown = minute.limit === Number(headers.get("x-ratelimit-limit")) ? minute : day;
  const reset = Number(headers.get("x-ratelimit-reset")) + (minute.until - shown.until) / 1_000;
  if (usage && reset < usage.reset) return usage;
  const same = reset === usage?.reset ? usage : undefined;
  return {
    ...minute,
    reset,
    left: Math.min(minute.left, same?.left ?? Infinity),
    entries: [...same?.entries ?? [], entry],
    day: { ...day, left: Math.min(day.left, same?.day.left ?? Infinity) },
  };
}

/**
 * The usage now: a window that has ended has all its requests again.
 * @param {Usage | undefined} usage
 * @param {number} now
 */
export function usageAt(usage, now) {
  if (!usage || now < usage.until) return usage;
  const { limit, day } = usage;
  return { ...usage, left: limit, entries: [], day: now < day.until ? day : { ...day, left: day.limit } };
}

/** How a request ended. @param {Entry} entry @returns {"ok" | "bad" | "refused"} */
export function outcomeOf({ answer: { status } }) {
  return status === 429 ? "refused" : status > 0 && status < 400 ? "ok" : "bad";
}

/** The requests that were not refused. @param {readonly Entry[]} entries */
export function admittedOf(entries) {
  return entries.filter((entry) => outcomeOf(entry) !== "refused");
}

/** How many requests a print stands for. @param {number} limit */
export function perPrint(limit) {
  return Math.max(1, Math.ceil(limit / MOST_PRINTS));
}

/**
 * The prints of a minute: requests of this page first, then those of other clients, and refused ones. If a print stands
 * for several requests, it shows the first that failed, or the first. The counts are those of requests that were
 * refused, succeeded, failed, and came from other clients.
 * @param {Pick<Usage, "limit" | "left" | "entries">} usage
 * @returns {{ admitted: Print[], refused: Print[], counts: number[] }}
 */
export function printsOf({ limit, left, entries }) {
  const per = perPrint(limit);
  const refused = entries.filter((entry) => outcomeOf(entry) === "refused");
  const own = admittedOf(entries);
  const failed = own.filter((entry) => outcomeOf(entry) === "bad").length;
  const others = Math.max(0, limit - left - own.length);
  const admitted = Array.from({ length: Math.ceil(limit / per) }, (_, index) => {
    const from = index * per;
    const some = own.slice(from, from + per);
    const entry = some.find((entry) => outcomeOf(entry) === "bad") ?? some[0];
    return { kind: entry ? outcomeOf(entry) : from < own.length + others ? "other" : "", entry };
  });
  return {
    admitted,
    refused: refused.filter((_, index) => index % per === 0).slice(0, MOST_PRINTS)
      .map((entry) => ({ kind: "refused", entry })),
    counts: [refused.length, own.length - failed, failed, others],
  };
}

/**
 * What is left, in words.
 * @param {Usage | undefined} usage
 * @param {{ now: number, bannedUntil: number, form: string, limit: number }} known `form` is the one shown for a key,
 *   and `limit` is that of a new account.
 * @returns {[left: string, reset: string]}
 */
export function standingOf(usage, { now, bannedUntil, form, limit }) {
  if (now < bannedUntil) return ["Banned", `for ${duration(bannedUntil - now)}`];
  if (!usage && form === "held") return ["Send to see what is left", ""];
  if (!usage) {
    return [`${count(limit)} requests a minute`, `${form === "make" ? "make" : "use"} a key to race`];
  }
  const { day, until } = usage;
  if (day.left === 0) return [`0 of ${count(day.limit)} left today`, `new in ${duration(day.until - now)}`];
  const end = now < until ? `new in ${duration(until - now)}, ` : "";
  return [`${count(usage.left)} of ${count(usage.limit)} left`, `${end}${count(day.left)} today`];
}

/**
 * The number of requests of a race: all that the minute has left and a few more, but too few for a ban. 0 if there can
 * be none now. The note says why, or what a race does.
 * @param {Usage | undefined} usage
 * @param {boolean} isBanned
 * @returns {[size: number, note: string]}
 */
export function raceOf(usage, isBanned) {
  if (isBanned) return [0, "Race again after the ban."];
  if (!usage) return [0, "Race after your first request."];
  const { limit, left, day, entries } = usage;
  const extra = Math.min(EXTRA, Math.floor(limit / 5));
  const size = Math.min(MOST_RACERS, left + extra);
  if (day.left <= size) return [0, "Too few requests are left today for a race."];
  if (left === 0 || entries.map(outcomeOf).includes("refused")) return [0, "Race again in the next minute."];
  return left + extra > size
    ? [size, `${count(left)} are left. The race sends ${size} at once: race again for the rest.`]
    : [size, `The race sends the ${left} that are left and ${extra} more at once.`];
}

/**
 * How many requests each process answered, the most first, by their ids in the service's own form.
 * @param {readonly Entry[]} entries
 */
export function processesOf(entries) {
  const ids = entries.map(({ answer: { headers } }) => headers.get("x-request-id") ?? "");
  const processes = Map.groupBy(ids, (id) => /^([\da-f]{8}-[\da-f]{4})-\d+$/.exec(id)?.[1]);
  return [...processes].flatMap(([process, { length }]) => process ? [length] : []).sort((one, other) =>
    other - one
  );
}
