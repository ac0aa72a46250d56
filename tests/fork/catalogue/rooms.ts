import { boolean, integer, type ItemOf, nameText, type Resource, resource } from "../../../src/declare.ts";

const FIELDS = {
  name: nameText(100, "The room's name"),
  seats: integer(1, 500, { description: "How many can sit in it" }),
  hasScreen: boolean({ description: "Whether it has a screen" }),
};

/** A room. */
export type Room = ItemOf<typeof FIELDS>;

/** Rooms, which everyone sees, and operators add. */
export const ROOMS: Resource<Room> = resource({
  name: "rooms",
  item: "Room",
  tag: { name: "Rooms", description: "All rooms" },
  noun: ["a room", "rooms"],
  fields: FIELDS,
  filters: ["hasScreen"],
  readableBy: "everyone",
  writableBy: "operator",
  examples: { item: { name: "Blue", seats: 8, hasScreen: true }, change: { seats: 10 } },
});
