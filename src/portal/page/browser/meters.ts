// deno-coverage-ignore-file -- runs in a browser, where tests/browser/ shows what it does
/// <reference lib="dom" />
import type { LimitWindow } from "./answer.ts";
import { byId } from "./dom.ts";

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
