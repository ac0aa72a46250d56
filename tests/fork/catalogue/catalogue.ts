import type { Catalogue } from "../../../src/declare.ts";
import { BOOKINGS } from "./bookings.ts";
import { INVOICES } from "./invoices.ts";
import { PAYMENTS } from "./payments.ts";
import { IDENTITY } from "../../../src/catalogue/identity.ts";
import { PLANS } from "./plans.ts";
import { ROOMS } from "./rooms.ts";

/** Meeting rooms, bookings of them, and invoices and their payments. */
export const CATALOGUE: Catalogue = {
  title: "Meeting Desk",
  resources: [ROOMS, BOOKINGS, INVOICES, PAYMENTS],
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
