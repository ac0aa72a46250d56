// deno-coverage-ignore-file -- runs in a browser, where tests/browser/ shows what it does
/// <reference lib="dom" />
import type { LimitWindow } from "./answer.ts";
import { byId, say } from "./dom.ts";

/** The two meters, which count the seconds down; returns what shows in them what a response told. */
export function startMeters(): (windows: readonly LimitWindow[]) => void {
  const ends = new Map<string, { readonly window: LimitWindow; readonly at: number }>();

  function draw(): void {
    for (const name of ["minute", "day"]) {
      const meter = byId(`meter-${name}`, HTMLElement);
      const known = ends.get(name);
      const seconds = known ? Math.ceil((known.at - Date.now()) / 1_000) : 0;
      const { limit, remaining } = known?.window ?? { limit: 0, remaining: 0 };
      // Once its time has passed, all of the window is there again.
      const left = seconds > 0 ? remaining : limit;
      meter.dataset.state = known === undefined ? "unknown" : left === 0 ? "empty" : "known";
      byId(`meter-${name}-bar`, HTMLElement).style.transform = `scaleX(${limit === 0 ? 0 : left / limit})`;
      byId(`meter-${name}-left`, HTMLElement).textContent = known === undefined
        ? "known after a call"
        : `${left.toLocaleString("en")} of ${limit.toLocaleString("en")} left`;
      byId(`meter-${name}-reset`, HTMLElement).textContent = seconds > 0
        ? `resets in ${duration(seconds)}`
        : "";
    }
  }

  function show(windows: readonly LimitWindow[]): void {
    ends.clear();
    for (const window of windows) ends.set(window.name, { window, at: Date.now() + window.seconds * 1_000 });
    draw();
  }

  setInterval(draw, 500);
  draw();
  return show;
}

/** Seconds as people say them. */
export function duration(seconds: number): string {
  if (seconds < 100) return `${seconds} s`;
  if (seconds < 6_000) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3_600)} h`;
}

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
