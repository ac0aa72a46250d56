// deno-coverage-ignore-file -- runs in a browser, where tests/browser/ shows what it does
/// <reference lib="dom" />
import { say } from "./dom.ts";
import { duration } from "./meters.ts";

/** A time in which nothing should be sent, by `Date.now()`. */
export interface Wait {
  readonly begun: number;
  readonly until: number;
}

/** Keeps a button from sending, and shows how long. */
export interface Pause {
  readonly isOver: () => boolean;
  /** Goes on with this wait, or none. */
  readonly show: (wait: Wait | undefined) => void;
}

/** The pause of the console's button. */
export function startPause(button: HTMLElement): Pause {
  const label = button.textContent;
  let wait: Wait | undefined;
  const isOver = () => wait === undefined || wait.until <= Date.now();

  function draw(): void {
    if (wait && !isOver()) {
      const left = wait.until - Date.now();
      // A disabled button would lose the focus.
      button.setAttribute("aria-disabled", "true");
      button.textContent = `Wait ${duration(Math.ceil(left / 1_000))}`;
      button.style.setProperty("--waited", `${1 - left / (wait.until - wait.begun)}`);
    } else if (button.hasAttribute("aria-disabled")) {
      button.removeAttribute("aria-disabled");
      button.textContent = label;
      say("You can send again.");
    }
  }

  setInterval(draw, 250);
  return { isOver, show: (next) => (wait = next, draw()) };
}
