// What the services here serve: the shipped catalogue, and a collection with every kind of field.
import * as shipped from "../../src/catalogue/catalogue.ts";
import type { Catalogue } from "../../src/resource/mod.ts";
import { SPECIMENS } from "../support/specimens.ts";

export const CATALOGUE: Catalogue = {
  ...shipped.CATALOGUE,
  resources: [shipped.CATALOGUE.resources[0], ...shipped.CATALOGUE.resources.slice(1, 8), SPECIMENS],
};
export const DEFAULT_KV_PATH = shipped.DEFAULT_KV_PATH;
/** Arguments of `deno run` with which a process serves these. */
export const SERVING: readonly string[] = ["--import-map", "tests/client/import_map.json"];
