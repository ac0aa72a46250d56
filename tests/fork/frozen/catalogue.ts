import type { Catalogue } from "../../../src/resource/mod.ts";
import { BOOKINGS } from "./bookings.ts";
import { IDENTITY } from "./identity.ts";
import { PLANS } from "./plans.ts";
import { ROOMS } from "./rooms.ts";

/** Meeting rooms, and bookings of them. */
export const CATALOGUE: Catalogue = {
  title: "Meeting Desk",
  resources: [ROOMS, BOOKINGS],
  plans: PLANS,
  keyPrefix: IDENTITY.keyPrefix,
  formerKeyPrefixes: IDENTITY.formerKeyPrefixes,
  interface: {
    version: "1.0.0",
    original: undefined,
    contact: { name: "The office" },
    license: { name: "MIT", identifier: "MIT" },
  },
};

/** The default of KV_PATH. */
export const DEFAULT_KV_PATH = "data/desk.kv";
