// @ts-check
/// <reference lib="dom" />
// The meter: a print for each request of the minute, and the numbers beside them.

import { all, create, mark, part, write } from "./document.js";
import { countAnswer, countOf, minuteReset, printsOf, readLimits } from "./limits.js";
import { duration } from "./text.js";

/**
 * @typedef {import("./limits.js").Limit} Limit
 * @typedef {import("./limits.js").Minute} Minute
 * @typedef {import("./limits.js").Print} Print
 */

/** Time between two prints, in ms. */
const STEP = 12;
/** The keys that move from print to print, and how far. */
const MOVES = new Map([["ArrowLeft", -1], ["ArrowRight", 1], ["Home", -Infinity], ["End", Infinity]]);

/** The prints and the numbers, from the responses to requests with the key. */
export class Meter {
  /** Number of requests with the key under way. */
  pending = 0;
  #prints = part("prints");
  #label = this.#prints.ariaLabel ?? "";
  #admitted = part("admitted");
  #refused = part("refused");
  #print = /** @type {Element} */ (this.#admitted.children[0]);
  #initialCount = this.#admitted.children.length;
  #initialText = part("minute").textContent;
  /** When the last print is shown. */
  #shownAt = 0;
  /** The marks that are listed. @type {Minute["marks"]} */
  #logged = [];
  /** @type {Minute | undefined} */
  #minute;
  /** @type {(Limit & { until: number })[]} */
  #limits = [];

  constructor() {
    const prints = this.#prints;
    prints.addEventListener("keydown", (event) => {
      const move = MOVES.get(event.key);
      if (move === undefined) return;
      event.preventDefault();
      this.#point(this.#all.indexOf(this.#pointed ?? prints) + move);
    });
    prints.addEventListener("focus", () => this.#point(this.#all.indexOf(this.#pointed ?? prints)));
    prints.addEventListener("blur", () => this.#leave());
    prints.addEventListener("pointerover", ({ target }) => {
      const print = target instanceof Element ? target.closest("[role=option]") : null;
      if (print) this.#show(print);
    });
    prints.addEventListener("pointerleave", () => this.#leave());
  }

  /** The current limits. A window that has ended has all its requests again. */
  get limits() {
    return this.#limits.map(({ until, ...limit }) => {
      const seconds = Math.ceil((until - Date.now()) / 1_000);
      return seconds > 0 ? { ...limit, seconds } : { ...limit, left: limit.limit, seconds: 0 };
    });
  }

  /** The current minute; undefined if unknown. */
  get minute() {
    const isOver = this.limits.some(({ name, seconds }) => name === "minute" && seconds === 0);
    return isOver && this.#minute ? { ...this.#minute, reset: 0, used: 0, marks: [] } : this.#minute;
  }

  /** Time in ms until the last print is shown. */
  get lag() {
    return Math.max(0, this.#shownAt - performance.now());
  }

  /** Draws what has changed. Returns whether the minute is still running. */
  draw() {
    const { minute, limits } = this;
    if (minute === undefined) return false;
    const { limit, used } = minute;
    const { seconds = 0 } = limits.find(({ name }) => name === "minute") ?? {};
    const day = limits.find(({ name }) => name === "day");
    const count = (/** @type {number} */ number) => number.toLocaleString("en");
    const left = `${count(limit - used)} of ${count(limit)}`;
    const { per, others, admitted, refused } = printsOf(minute, this.pending);
    write(part("minute"), `${left} left`);
    write(part("minute-end"), seconds > 0 ? `new in ${duration(seconds)}` : "");
    write(part("day"), day ? `${count(day.left)} of ${count(day.limit)} today` : "");
    write(part("per"), per === 1 ? "" : `One print for every ${per} requests.`);
    this.#drawPrints(admitted, refused, limit);
    const outcomes = `${countOf(minute, "ok")} succeeded, ${countOf(minute, "bad")} failed`;
    mark(
      this.#prints,
      "aria-label",
      `${left} requests left this minute: ${outcomes}, ${others} came from other clients; ` +
        `${countOf(minute, "refused")} were refused`,
    );
    this.#drawLog(minute.marks);
    return seconds > 0;
  }

  /** Records a response to a call with the key. @param {{ status: number, headers: Headers, code: string }} answer @param {string} text What its print says. */
  note(answer, text) {
    const limits = readLimits(answer.headers);
    const isOfKey = limits.some(({ name }) => name === "day");
    const isLate = minuteReset(answer.headers) < (this.#minute?.reset ?? 0);
    // Ignores late responses from an earlier minute, and the 429 of a ban, whose reset is the end of the ban.
    if (!isOfKey || isLate || answer.code === "key_banned") return;
    this.#minute = countAnswer(this.#minute, answer, text);
    this.#limits = limits.map((limit) => {
      const until = Date.now() + limit.seconds * 1_000;
      // Responses may overtake each other.
      const before = this.#limits.find(({ name, until: end }) =>
        name === limit.name && Math.abs(end - until) < 2_000
      );
      return { ...limit, left: Math.min(limit.left, before?.left ?? limit.left), until };
    });
    this.draw();
  }

  /** Returns to the state before the first call. For another key, because its plan is not known yet. */
  forget() {
    this.#minute = undefined;
    this.#limits = [];
    write(part("minute"), this.#initialText);
    for (const id of ["minute-end", "day", "per"]) write(part(id), "");
    const unused = Array.from({ length: this.#initialCount }, () => ({ kind: "", text: "not used" }));
    this.#drawPrints(/** @type {Print[]} */ (unused), [], this.#initialCount);
    mark(this.#prints, "aria-label", this.#label);
    this.#drawLog([]);
  }

  /** @param {readonly Print[]} admitted @param {readonly Print[]} refused @param {number} limit */
  #drawPrints(admitted, refused, limit) {
    const hint = this.#refused.dataset.hint?.replace(/\d[\d,]*/, (limit + 1).toLocaleString("en")) ?? "";
    mark(this.#refused, "data-hint", hint);
    for (
      const [parent, prints] of /** @type {const} */ ([[this.#admitted, admitted], [this.#refused, refused]])
    ) {
      for (const extra of [...parent.children].slice(prints.length)) extra.remove();
      while (parent.children.length < prints.length) parent.append(this.#print.cloneNode(true));
    }
    for (const [index, { kind, text }] of [...admitted, ...refused].entries()) {
      const print = this.#all[index];
      if (print === undefined) return;
      mark(print, "id", `print-${index + 1}`);
      mark(print, "aria-label", `${index + 1}: ${text}`);
      if (print.className === kind) continue;
      if (kind !== "") this.#follow(print);
      print.className = kind;
    }
  }

  /** Shows a print after those before it. @param {HTMLElement} print */
  #follow(print) {
    const now = performance.now();
    this.#shownAt = Math.max(now, this.#shownAt + STEP);
    print.style.transitionDelay = `${Math.round(this.#shownAt - now)}ms`;
  }

  /** Lists the requests of the minute. @param {Minute["marks"]} marks */
  #drawLog(marks) {
    if (marks === this.#logged) return;
    const list = part("log-list");
    const isLater = marks[0] === this.#logged[0];
    const lines = marks.slice(isLater ? this.#logged.length : 0).map(({ kind, text }) =>
      create("li", kind, text)
    );
    if (isLater) list.append(...lines);
    else list.replaceChildren(...lines);
    this.#logged = marks;
  }

  get #all() {
    return /** @type {HTMLElement[]} */ ([...this.#admitted.children, ...this.#refused.children]);
  }

  /** The print that the arrow keys have reached. */
  get #pointed() {
    return all(
      "#prints [role=option]",
    )[Number(this.#prints.getAttribute("aria-activedescendant")?.slice(6)) - 1];
  }

  /** Moves to the print with this index. @param {number} index */
  #point(index) {
    const prints = this.#all;
    const print = prints[Math.max(0, Math.min(index, prints.length - 1))];
    if (print === undefined) return;
    mark(this.#prints, "aria-activedescendant", print.id);
    this.#show(print);
  }

  /** Shows what a print says. @param {Element} print */
  #show(print) {
    this.#leave();
    mark(print, "data-shown", "");
    write(part("pointed"), print.ariaLabel ?? "");
  }

  #leave() {
    for (const print of all("#prints [data-shown]")) mark(print, "data-shown", null);
    write(part("pointed"), "");
  }
}
