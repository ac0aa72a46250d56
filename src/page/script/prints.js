// @ts-check
/// <reference lib="dom" />
// The prints of a minute.

import { all, mark, on, part, write } from "./document.js";
import { perPrint, printsOf } from "./limits.js";
import { count, targetOf } from "./request.js";

/**
 * @typedef {import("./request.js").Entry} Entry
 */

/** The prints that are drawn. */
export const PRINTS = "#prints > svg, #refused > svg";
/** How many places in the row of refused requests are for the number of those that have none. */
export const PLACES_OF_MORE = 3;
/** The requests of the prints that are drawn, in their order. @type {(Entry | undefined)[]} */
export const printed = [];

/**
 * Draws the prints of a minute, one by one within 600 ms, and counts them in the legend.
 * @param {Parameters<typeof printsOf>[0]} usage
 */
export function drawPrints(usage) {
  const { admitted, refused, counts } = printsOf(usage);
  for (const [id, kinds] of Object.entries({ prints: admitted, refused })) {
    const prints = all(`#${id} > svg`);
    for (const extra of prints.slice(kinds.length)) extra.remove();
    for (const _ of kinds.slice(prints.length)) part(id).append(all("#legend svg")[0]?.cloneNode(true) ?? "");
  }
  const drawn = [...admitted, ...refused];
  printed.splice(0, Infinity, ...drawn.map(({ entry }) => entry));
  const prints = all(PRINTS).map((print, at) => ({ print, kind: drawn[at]?.kind ?? "" }));
  const changed = prints.filter(({ print, kind }) => print.getAttribute("class") !== kind);
  for (const [index, { print, kind }] of changed.entries()) {
    print.style.transitionDelay = `${index * Math.min(12, 500 / changed.length)}ms`;
    mark(print, "class", kind);
  }
  for (const [index, bold] of all("#legend b").entries()) {
    const number = counts[index];
    write(bold, number ? count(number) : "");
  }
  const per = perPrint(usage.limit);
  const columns = Number(getComputedStyle(part("refused")).getPropertyValue("--columns"));
  const more = (counts[0] ?? 0) - (columns - PLACES_OF_MORE) * per;
  mark(part("refused"), "data-more", refused.length > columns && `+${count(more)}`);
  const each = per === 1 ? "One print is one request" : `One print is ${count(per)} requests`;
  write(part("per"), per > 1 || !counts.some(Boolean) ? each : "");
  mark(part("prints"), "aria-label", `${count(usage.left)} of ${count(usage.limit)} requests left. ${each}.`);
}

/**
 * Tells the request of a print that the pointer is on, and acts on one that is clicked. For the keyboard, there is a
 * list.
 * @param {(entry: Entry) => unknown} act
 */
export function startPrints(act) {
  /** @param {Event} event */
  const entryAt = ({ target }) => {
    const pointed = target instanceof Element && target.closest(PRINTS);
    return printed[all(PRINTS).findIndex((print) => print === pointed)];
  };
  for (const type of ["pointermove", "pointerleave"]) {
    on("strip", type, (event) => {
      const entry = entryAt(event);
      mark(part("strip"), "data-pointed", entry !== undefined && "");
      write(part("pointed"), entry ? nameOf(entry) : "");
    });
  }
  on("strip", "click", (event) => {
    const entry = entryAt(event);
    if (entry) act(entry);
  });
}

/** A request and how it ended, in words. @param {Entry} entry */
export function nameOf({ call, answer: { status, text, ms } }) {
  return `${status || text} ${call.method} ${targetOf(call)} ${ms} ms`;
}
