// Rooms that operators add, and bookings that only their account sees.
import { type Catalogue, type ItemOf, type Resource, resource } from "../../src/resource/mod.ts";
import { int64, nameText, oneOf, text, timestamp } from "../../src/web/schema.ts";
import type { HarnessRequest } from "./client.ts";
import { Harness, type HarnessOptions } from "./harness.ts";
import { OF_THINGS } from "./things.ts";

const ROOM_FIELDS = { name: nameText(100, "The room's name") };
const BOOKING_FIELDS = {
  roomId: int64({ description: "The room" }),
  title: text({ max: 100, description: "What it is for" }),
  startsAt: timestamp({ description: "When it starts" }),
  endsAt: timestamp({ description: "When it ends" }),
  state: oneOf(["planned", "confirmed"], { description: "State" }),
};

/** A room. */
export type Room = ItemOf<typeof ROOM_FIELDS>;

/** A booking. */
export type Booking = ItemOf<typeof BOOKING_FIELDS>;

/** Rooms, which every account sees. */
export const ROOMS: Resource<Room> = resource({
  name: "rooms",
  item: "Room",
  tag: { name: "Rooms", description: "All rooms" },
  noun: ["a room", "rooms"],
  fields: ROOM_FIELDS,
  filters: [],
  readableBy: "everyone",
  writableBy: "operator",
  examples: { item: { name: "Blue" }, change: { name: "Green" } },
});

/** A booking to add. */
export const REVIEW = {
  roomId: 1,
  title: "Review",
  startsAt: "2027-01-11T09:00:00Z",
  endsAt: "2027-01-11T10:00:00Z",
  state: "confirmed",
} as const;

/** Bookings, which only their account sees. */
export const BOOKINGS: Resource<Booking> = resource({
  name: "bookings",
  item: "Booking",
  tag: { name: "Bookings", description: "The bookings of an account" },
  noun: ["a booking", "bookings"],
  fields: BOOKING_FIELDS,
  filters: ["state"],
  readableBy: "owner",
  writableBy: "owner",
  examples: { item: REVIEW, change: { title: "Retrospective" } },
});

/** A catalogue of rooms and bookings. */
export const OF_ROOMS: Catalogue = { ...OF_THINGS, title: "Office", resources: [ROOMS, BOOKINGS] };

const LIMITS = { minute: 1_000_000, day: 1_000_000 };
const OPERATOR = "the-operators-token-in-the-tests";

/** The whole service with rooms and bookings, and two accounts, Ann and Ben. */
export class Office extends Harness {
  ann: string = "";
  ben: string = "";

  /** Creates one on a new KV in memory. */
  static override async open(options?: HarnessOptions): Promise<Office> {
    return await Office.on(await Deno.openKv(":memory:"), options);
  }

  /** Creates one on this KV, which it closes. */
  static async on(kv: Deno.Kv, options?: HarnessOptions): Promise<Office> {
    const office = new Office(kv, { catalogue: OF_ROOMS, operatorToken: OPERATOR, ...options });
    const [ann, ben] = [await office.createAccount(LIMITS), await office.createAccount(LIMITS)];
    return Object.assign(office, { ann: ann.apiKey, ben: ben.apiKey });
  }

  /** Sends a request of the operator, such as `operate("POST /operator/v1/rooms")`. */
  operate(target: string, request: HarnessRequest = {}): Promise<Response> {
    return this.fetch(target, { key: OPERATOR, ...request });
  }

  /** The id of an account. */
  async idOf(key: string): Promise<string> {
    return (await (await this.fetch("GET /v1/account", { key })).json()).id;
  }

  /** Adds rooms. Resolves to their ids. */
  async addRooms(count: number): Promise<number[]> {
    const ids: number[] = [];
    while (ids.length < count) {
      ids.push(await idIn(await this.operate("POST /operator/v1/rooms", { json: { name: "Blue" } })));
    }
    return ids;
  }

  /** Adds a booking. */
  book(key: string, booking: Partial<Booking> = {}): Promise<Response> {
    return this.fetch("POST /v1/bookings", { key, json: { ...REVIEW, ...booking } });
  }
}

/** The id of the item in a response. */
export async function idIn(response: Response): Promise<number> {
  return (await response.json()).id;
}
