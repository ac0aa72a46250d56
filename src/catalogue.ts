import type { Catalogue } from "./resource/mod.ts";
import { PETS } from "./pets/pets.ts";

/** What this service is called, and which collections it has. To make it your own, begin here. */
export const CATALOGUE: Catalogue = {
  title: "Animal Store",
  resources: [PETS],
};

/** The default of KV_PATH. */
export const DEFAULT_KV_PATH = "data/animals.kv";
