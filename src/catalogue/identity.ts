// The prefix of keys, and the page's tagline, its prints and its colours. Titles and nouns come from the catalogue.
import { PLANS } from "./plans.ts";

/** API keys begin with `as_live_` or, in staging, `as_test_`. */
export const KEY_PREFIX = "as";
/** Prefixes of keys that were issued before: accepted, and hidden in logs and messages. */
export const FORMER_KEY_PREFIXES: readonly string[] = [];

/** Follows the name of the service in the title of the page. */
export const TAGLINE = "an API whose limits are exact";
/** Description for search engines. */
export const SUMMARY =
  "A small API with API keys and exact rate limits. Try it in one click, or make it your own.";
/** What the service is, and why a visitor would care. */
export const LEAD: readonly string[] = [
  "A small API to try in one click, or to make your own.",
  `Request ${PLANS.limits[PLANS.signUp].minute + 1} of a minute is refused, every time.`,
];
/** URL of the source code; undefined if it is not public. */
export const SOURCE: string | undefined = undefined;

/** The print that a request leaves: its name, and SVG shapes, 32 by 32. */
export const PRINT = "paw";
export const PRINT_SHAPES = `<ellipse cx="7.6" cy="15.2" rx="2.3" ry="3"/>` +
  `<ellipse cx="12.7" cy="9.6" rx="2.4" ry="3.3"/><ellipse cx="19.3" cy="9.6" rx="2.4" ry="3.3"/>` +
  `<ellipse cx="24.4" cy="15.2" rx="2.3" ry="3"/><path d="M16 14.6c3.4 0 7.2 4.6 7.2 7.8 0 2.2-1.7 3.2-3.5 3.2` +
  `-1.5 0-2.5-.7-3.7-.7s-2.2.7-3.7.7c-1.8 0-3.5-1-3.5-3.2 0-3.2 3.8-7.8 7.2-7.8z"/>`;
/** Colours of the icon: its ground, and the print on it. */
export const ICON_COLOURS: readonly [ground: string, print: string] = ["#1c3faa", "#fdf9f1"];

/** Colours of the browser's frame around the page. */
export const THEME_COLOURS: Readonly<Record<"light" | "dark", string>> = {
  light: "#fcf9f3",
  dark: "#0e0c09",
};
/**
 * Colours of the page: paper, ink and accent, light and dark. The console is dark in both. The tests in browsers require
 * a contrast of 7:1 between text and what is behind it (WCAG AAA).
 */
export const PALETTE = `:root {
  --paper: light-dark(oklch(98.3% 0.009 85), oklch(15.5% 0.008 70));
  --well: light-dark(oklch(95.2% 0.013 85), oklch(21.5% 0.01 70));
  --line: light-dark(oklch(89% 0.016 85), oklch(32% 0.012 70));
  --ink: light-dark(oklch(23% 0.045 268), oklch(95% 0.012 85));
  --soft: light-dark(oklch(40% 0.035 268), oklch(82% 0.018 80));
  --accent: light-dark(oklch(43.5% 0.185 264), oklch(83% 0.085 262));
  --ok: light-dark(oklch(40% 0.12 150), oklch(84% 0.17 152));
  --bad: light-dark(oklch(44% 0.17 25), oklch(77% 0.135 22));
  --wait: oklch(84% 0.145 78);
  --console: oklch(20.5% 0.06 268);
  --console-well: oklch(27% 0.066 268);
  --console-line: oklch(36% 0.06 268);
}
@media (prefers-color-scheme: dark) {
  :root {
    --console: oklch(30% 0.072 268);
    --console-well: oklch(33.5% 0.078 268);
    --console-line: oklch(43% 0.07 268);
  }
}
`;
