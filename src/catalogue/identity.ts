import type { Identity } from "../declare.ts";
import { PLANS } from "./plans.ts";

const SUMMARY = "A store of animals over HTTP and JSON, to test your client, SDK or gateway against.";

/** What API keys begin with, and what the page looks like. Titles and nouns come from the catalogue. */
export const IDENTITY: Identity = {
  keyPrefix: "as",
  formerKeyPrefixes: [],
  tagline: "an API whose limits are exact",
  summary: SUMMARY,
  lead: [SUMMARY, `${PLANS.limits[PLANS.signUp]?.minute} requests a minute, and never one over.`],
  source: undefined,
  print: {
    name: "paw",
    shapes: `<ellipse cx="7.6" cy="15.2" rx="2.3" ry="3"/>` +
      `<ellipse cx="12.7" cy="9.6" rx="2.4" ry="3.3"/><ellipse cx="19.3" cy="9.6" rx="2.4" ry="3.3"/>` +
      `<ellipse cx="24.4" cy="15.2" rx="2.3" ry="3"/><path d="M16 14.6c3.4 0 7.2 4.6 7.2 7.8 0 2.2-1.7 3.2-3.5 3.2` +
      `-1.5 0-2.5-.7-3.7-.7s-2.2.7-3.7.7c-1.8 0-3.5-1-3.5-3.2 0-3.2 3.8-7.8 7.2-7.8z"/>`,
  },
  hues: { paper: 85, accent: 264 },
  chroma: 1,
};
