/** A service's environment. A key from one environment is not valid in the other. */
export type Environment = "production" | "staging";

/** What API keys begin with. */
export interface KeyPrefixes {
  /** The prefix of new keys: `my`, for `my_live_` or, in staging, `my_test_`. */
  readonly keyPrefix: string;
  /** Prefixes of keys that were issued before: accepted, and hidden in logs and messages, but never issued. */
  readonly formerKeyPrefixes: readonly string[];
}

/** What API keys begin with, and what the page looks like. */
export interface Identity extends KeyPrefixes {
  /** Follows the name of the service in the title of the page. */
  readonly tagline: string;
  /** Description for search engines. */
  readonly summary: string;
  /** What the service is, for whom, and what it promises. */
  readonly lead: readonly string[];
  /** URL of the source code. If it is undefined, the page invites nobody to make it their own. */
  readonly source: string | undefined;
  /** The print that a request leaves: its name, and SVG shapes, 32 by 32. */
  readonly print: { readonly name: string; readonly shapes: string };
  /**
   * Hues of the page in degrees (oklch): of its paper, and of its ink, accent and console. The style has the lightness,
   * so text keeps a contrast of 7:1 (WCAG AAA) with any hue.
   */
  readonly hues: { readonly paper: number; readonly accent: number };
  /** How colourful the page is: 0 is grey. */
  readonly chroma: number;
}
