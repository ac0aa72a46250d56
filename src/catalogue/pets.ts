import { int64, type ItemOf, named, nameText, oneOf, optional, type Resource, resource } from "../declare.ts";

/** The availability statuses. */
export const PET_STATUSES = ["available", "pending", "sold"] as const;

const FIELDS = {
  name: nameText(255, "The animal's name"),
  categoryId: int64({
    description:
      "Identifier of the category the animal belongs to, stored exactly. `JSON.parse` of JavaScript rounds integers beyond 2^53.",
  }),
  status: optional(
    named("PetStatus", oneOf(PET_STATUSES, { description: "Availability status" })),
    "available",
  ),
};

/** An animal in the catalogue. */
export type Pet = ItemOf<typeof FIELDS>;

/** The catalogue of animals: the collection to replace with your own. */
export const PETS: Resource<Pet> = resource({
  name: "pets",
  item: "Pet",
  tag: { name: "Animals", description: "The catalogue of animals" },
  noun: ["an animal", "animals"],
  fields: FIELDS,
  filters: ["status"],
  readableBy: "everyone",
  writableBy: "owner",
  examples: { item: { name: "Rex", categoryId: 1 }, change: { status: "sold" } },
  // These follow interface 1.0.0.
  isLenient: true,
  creation: { description: "An animal to add. Interface 1.0.0 calls this schema NewPet." },
  get: {
    deprecated: {
      since: Date.UTC(2025, 11, 5),
      sunset: Date.UTC(2030, 11, 5),
      advice: "Use `GET /v1/pets` with the `status` filter",
    },
  },
  // These are not part of it.
  update: { isExtension: true },
  delete: { isExtension: true },
  // The keys that version 1.0.0 chose.
  rows: {
    items: ["pets"],
    index: (filters) => [`pets_by_${filters.join("_")}`],
    ids: ["ids"],
    version: ["catalogue"],
    filtersBefore: ["status"],
  },
});
