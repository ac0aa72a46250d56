// What a process serves if accounts can add no item of the shipped catalogue by itself: things, too.
import * as shipped from "../../src/catalogue/catalogue.ts";
import type { Catalogue } from "../../src/resource/mod.ts";
import { THINGS } from "../support/things.ts";

export const CATALOGUE: Catalogue = {
  ...shipped.CATALOGUE,
  resources: [THINGS, ...shipped.CATALOGUE.resources.slice(0, 8)],
};
export const DEFAULT_KV_PATH = shipped.DEFAULT_KV_PATH;
