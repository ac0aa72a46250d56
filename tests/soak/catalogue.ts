// What the processes serve whose feed is followed: things, which everyone reads, and notes, which only their owners read.
import * as shipped from "../../src/catalogue/catalogue.ts";
import { type Catalogue, resource } from "../../src/resource/mod.ts";
import { text } from "../../src/web/schema.ts";
import { THINGS } from "../support/things.ts";

const NOTES = resource({
  name: "notes",
  item: "Note",
  tag: { name: "Notes", description: "Notes of an account" },
  noun: ["a note", "notes"],
  fields: { name: text({ max: 100, description: "What is noted" }) },
  filters: [],
  readableBy: "owner",
  writableBy: "owner",
  examples: { item: { name: "Milk" }, change: { name: "Oat milk" } },
});

export const CATALOGUE: Catalogue = { ...shipped.CATALOGUE, resources: [THINGS, NOTES] };
export const DEFAULT_KV_PATH = shipped.DEFAULT_KV_PATH;
