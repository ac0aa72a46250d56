// The prefix of keys, and the page's tagline, its prints and its hues. Titles and nouns come from the catalogue.
import { PLANS } from "./plans.ts";

/** API keys begin with `as_live_` or, in staging, `as_test_`. */
export const KEY_PREFIX = "as";
/** Prefixes of keys that were issued before: accepted, and hidden in logs and messages. */
export const FORMER_KEY_PREFIXES: readonly string[] = [];

/** Follows the name of the service in the title of the page. */
export const TAGLINE = "an API whose limits are exact";
/** Description for search engines. */
export const SUMMARY = "A store of animals over HTTP and JSON, to test your client, SDK or gateway against.";
/** What the service is, for whom, and what it promises. */
export const LEAD: readonly string[] = [
  SUMMARY,
  `${PLANS.limits[PLANS.signUp].minute} requests a minute, and never one over.`,
];
/** URL of the source code; undefined if it is not public. Without it, the page invites nobody to make it their own. */
export const SOURCE: string | undefined = undefined;

/** The print that a request leaves: its name, and SVG shapes, 32 by 32. */
export const PRINT = "paw";
export const PRINT_SHAPES = `<ellipse cx="7.6" cy="15.2" rx="2.3" ry="3"/>` +
  `<ellipse cx="12.7" cy="9.6" rx="2.4" ry="3.3"/><ellipse cx="19.3" cy="9.6" rx="2.4" ry="3.3"/>` +
  `<ellipse cx="24.4" cy="15.2" rx="2.3" ry="3"/><path d="M16 14.6c3.4 0 7.2 4.6 7.2 7.8 0 2.2-1.7 3.2-3.5 3.2` +
  `-1.5 0-2.5-.7-3.7-.7s-2.2.7-3.7.7c-1.8 0-3.5-1-3.5-3.2 0-3.2 3.8-7.8 7.2-7.8z"/>`;
/**
 * Hues of the page in degrees (oklch): of its paper, and of its ink, accent and console. The style has the lightness, so
 * text keeps a contrast of 7:1 (WCAG AAA) with any hue.
 */
export const HUES = { paper: 85, accent: 264 } as const;
/** How colourful the page is: 0 is grey. */
export const CHROMA = 1;
