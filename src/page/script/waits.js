// @ts-check
/// <reference lib="dom" />
// Buttons that wait for an answer, or for as long as Retry-After says.

import { isCalm, mark, part, say, write } from "./document.js";
import { duration } from "./text.js";

/** If there is no answer after this time, in ms, a button says what it does. */
const BUSY_AFTER = 300;

/** How long each payer has to wait. */
export class Waits {
  /** @type {Map<string, { begun: number, until: number }>} */
  #waits = new Map();

  /** Delays requests that are charged to this payer. @param {string} payer @param {number} seconds */
  add(payer, seconds) {
    this.#waits.set(payer, { begun: Date.now(), until: Date.now() + seconds * 1_000 });
  }

  /** Remaining wait of the payer, in ms. @param {string} payer */
  of(payer) {
    return Math.max(0, (this.#waits.get(payer)?.until ?? 0) - Date.now());
  }

  /**
   * Shows on a button how long its payer has to wait. Returns whether it has to.
   * @param {HTMLButtonElement} button
   * @param {string} payer
   * @param {string} news What to announce when the wait is over.
   */
  draw(button, payer, news) {
    const left = this.of(payer);
    const { begun = 0, until = 0 } = this.#waits.get(payer) ?? {};
    if (left > 0) {
      // `disabled` would take the focus from the button.
      mark(button, "aria-disabled", "true");
      write(button, `Wait ${duration(Math.ceil(left / 1_000))}`);
      if (button.dataset.until !== `${until}`) {
        button.dataset.until = `${until}`;
        fill(button, until - begun, begun - Date.now());
      }
    } else if (button.dataset.until !== undefined) {
      mark(button, "aria-disabled", null);
      mark(button, "data-until", null);
      for (const animation of button.getAnimations()) animation.cancel();
      write(button, button.value);
      say(news);
    }
    return left > 0;
  }
}

/** Fills the background of a button in this time. @param {HTMLElement} button @param {number} duration @param {number} delay */
function fill(button, duration, delay) {
  if (isCalm()) return;
  for (const animation of button.getAnimations()) animation.cancel();
  button.animate({ backgroundSize: ["0% 100%", "100% 100%"] }, { duration, delay });
}

/**
 * Runs an action while the console is busy. The button says what it does if that takes a while.
 * @param {HTMLButtonElement} button
 * @param {string} doing
 * @param {() => Promise<void>} act
 */
export async function whileBusy(button, doing, act) {
  const label = button.textContent;
  // Keeps its width, whatever it says.
  button.style.width = `${button.getBoundingClientRect().width}px`;
  const timer = setTimeout(() => write(button, doing), BUSY_AFTER);
  part("console").ariaBusy = "true";
  say("Sending");
  try {
    await act();
  } finally {
    clearTimeout(timer);
    write(button, label);
    button.style.width = "";
    part("console").ariaBusy = null;
  }
}
