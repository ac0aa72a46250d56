import { type ItemOf, type Resource, resource } from "../../src/resource/mod.ts";
import { boolean, integer, list, nameText, oneOf, optional, text } from "../../src/web/schema.ts";

const MATERIALS = ["wood", "metal", "plastic", "plush", "paper"] as const;

const FIELDS = {
  name: nameText(100, "The toy's name"),
  priceCents: integer(0, 1_000_000, { description: "Price in cents" }),
  material: oneOf(MATERIALS, { description: "Main material" }),
  inStock: boolean({ description: "Whether it can be sold now" }),
  tags: optional(list(text({ max: 30 }), 10, { description: "Words to find it by" })),
};

/** A toy. */
export type Toy = ItemOf<typeof FIELDS>;

/** The catalogue of toys. */
export const TOYS: Resource<Toy> = resource({
  name: "toys",
  item: "Toy",
  tag: { name: "Toys", description: "The catalogue of toys" },
  noun: ["a toy", "toys"],
  fields: FIELDS,
  filters: ["material", "inStock"],
  readableBy: "everyone",
  writableBy: "owner",
  examples: {
    item: { name: "Robot", priceCents: 1_999, material: "metal", inStock: true },
    change: { inStock: false },
  },
});
