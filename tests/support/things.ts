// A small collection for tests.
import type { Plans } from "../../src/service/mod.ts";
import { KeyForm } from "../../src/accounts/api_key.ts";
import { type Catalogue, type ItemOf, type Resource, resource } from "../../src/resource/mod.ts";
import { nameText } from "../../src/web/schema.ts";
import { boolean, int64, list, named, oneOf, optional, text } from "../../src/web/schema.ts";

/** When `GET /v1/things/{thingId}` is removed, in ms since the epoch. */
export const SUNSET: number = Date.UTC(2029, 11, 31);

/** The fields of a thing. */
const THING_FIELDS = {
  name: nameText(255, "The thing's name"),
  weight: int64({ description: "Weight in grams" }),
  state: optional(named("ThingState", oneOf(["new", "used", "lost"], { description: "State" })), "new"),
  isSpare: optional(boolean({ description: "Whether there is another one" }), false),
  labels: optional(list(text({ max: 20 }), 5, { description: "Words on it" })),
};

/** A thing. */
export type Thing = ItemOf<typeof THING_FIELDS>;

/**
 * A collection with two filters, a field with a default, and a field that can be removed. Its list, create and get are
 * lenient, and get is deprecated.
 */
export const THINGS: Resource<Thing> = resource({
  name: "things",
  item: "Thing",
  tag: { name: "Things", description: "All things" },
  noun: ["a thing", "things"],
  fields: THING_FIELDS,
  filters: ["state", "isSpare"],
  readableBy: "everyone",
  writableBy: "owner",
  examples: { item: { name: "Hammer", weight: 700 }, change: { state: "used" } },
  isLenient: true,
  get: { deprecated: { since: Date.UTC(2025, 0, 31), sunset: SUNSET, advice: "Use `GET /v1/things`" } },
  update: { isExtension: true },
  delete: { isExtension: true },
});

/** Plans for tests. */
export const PLANS = {
  limits: {
    free: { minute: 60, day: 1_000 },
    pro: { minute: 300, day: 10_000 },
    business: { minute: 1_000, day: 100_000 },
  },
  signUp: "free",
  own: "enterprise",
} as const satisfies Plans;

/** A catalogue of things only. */
export const OF_THINGS: Catalogue = {
  title: "Thing Store",
  resources: [THINGS],
  plans: PLANS,
  keyPrefix: "as",
  formerKeyPrefixes: ["old"],
  interface: {
    version: "1.0.0",
    original: "1.0.0",
    contact: { name: "The workshop" },
    license: { name: "MIT", identifier: "MIT" },
  },
};

/** The keys of its accounts. */
export const KEYS: KeyForm = new KeyForm(OF_THINGS);

/** A thing to add. */
export const HAMMER = { name: "Hammer", weight: 700 } as const;
