import type { Catalogue } from "../declare.ts";
import { IDENTITY } from "./identity.ts";
import { PETS } from "./pets.ts";
import { PLANS } from "./plans.ts";

/** What this service offers. To make the service your own, begin here. */
export const CATALOGUE: Catalogue = {
  title: "Animal Store",
  resources: [PETS],
  plans: PLANS,
  keyPrefix: IDENTITY.keyPrefix,
  formerKeyPrefixes: IDENTITY.formerKeyPrefixes,
  interface: {
    version: "1.0.0",
    // Documents mark what is not part of this version.
    original: "1.0.0",
    contact: { name: "The operator of this service" },
    license: { name: "MIT", identifier: "MIT" },
  },
};

/** The default of KV_PATH. */
export const DEFAULT_KV_PATH = "data/animals.kv";
