import type { Catalogue } from "../resource/mod.ts";
import { PETS } from "./pets.ts";

/** The name of this service, and its collections. To make the service your own, begin here. */
export const CATALOGUE: Catalogue = {
  title: "Animal Store",
  resources: [PETS],
};

/** The default of KV_PATH. */
export const DEFAULT_KV_PATH = "data/animals.kv";
