// Rooms that operators add, bookings that only their account sees, and guests: with rules, references, slots, and values
// that are unique.
import { assert, assertEquals } from "@std/assert";
import { hash } from "node:crypto";
import { decodeJson, encodeJson } from "../../src/engine/mod.ts";
import {
  type Catalogue,
  type Declaration,
  exists,
  type Hook,
  type ItemOf,
  type Resource,
  resource,
  unique,
} from "../../src/resource/mod.ts";
import { ApiError, type ErrorKind } from "../../src/web/mod.ts";
import { int64, nameText, oneOf, optional, text, timestamp } from "../../src/web/schema.ts";
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

const GUEST_FIELDS = {
  email: text({ max: 100, description: "Where the guest is reached" }),
  bookingId: optional(int64({ description: "The booking that the guest is invited to" })),
  state: oneOf(["invited", "gone"], { description: "State" }),
};

/** A room. */
export type Room = ItemOf<typeof ROOM_FIELDS>;

/** A booking. */
export type Booking = ItemOf<typeof BOOKING_FIELDS>;

/** A guest. */
export type Guest = ItemOf<typeof GUEST_FIELDS>;

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
  state: "planned",
} as const;

/** Another booking has the room on that day. */
export const SLOT_TAKEN: ErrorKind = {
  code: "slot_taken",
  status: 409,
  means: "Another confirmed booking has the room on this day.",
  todo: "Choose another room or day.",
};

/** A guest who is gone does not come back. */
export const GUEST_GONE: ErrorKind = {
  code: "guest_gone",
  status: 409,
  means: "The guest is gone.",
  todo: "Invite another guest.",
};

/** No two confirmed bookings of a room are on the same day. */
export const SLOT: Hook<Booking> = {
  name: "slot",
  errors: [SLOT_TAKEN],
  keys: ({ before, after }) => [...slotsOf(before), ...slotsOf(after)],
  apply(rows, write, { id, before, after }) {
    for (const key of slotsOf(before)) write.delete(key);
    for (const key of slotsOf(after)) {
      const row = rows.get(key);
      if (row && decodeJson<number>(row) !== id) {
        throw new ApiError(SLOT_TAKEN, "The room is taken that day.");
      }
      write.set(key, encodeJson(id));
    }
  },
};

/** The day of a time, in UTC. */
function dayOf(time: string): string {
  return new Date(time).toISOString().slice(0, 10);
}

function slotsOf(booking: Booking | undefined): Deno.KvKey[] {
  if (booking?.state !== "confirmed") return [];
  return [["own", "bookings", "slot", booking.roomId, dayOf(booking.startsAt)]];
}

/** Bookings, which only their account sees. */
export const BOOKING_DECLARATION: Declaration<typeof BOOKING_FIELDS> = {
  name: "bookings",
  item: "Booking",
  tag: { name: "Bookings", description: "The bookings of an account" },
  noun: ["a booking", "bookings"],
  fields: BOOKING_FIELDS,
  filters: ["state"],
  readableBy: "owner",
  writableBy: "owner",
  rules: [
    {
      check: ({ item: { startsAt, endsAt } }) =>
        Date.parse(startsAt) < Date.parse(endsAt) ? undefined : "The field endsAt must be after startsAt.",
    },
    {
      check: ({ item: { startsAt, endsAt } }) =>
        dayOf(startsAt) === dayOf(endsAt) ? undefined : "The field endsAt must be on the day of startsAt.",
    },
  ],
  extend: [exists(ROOMS, "roomId"), SLOT],
  examples: { item: REVIEW, change: { roomId: 2 } },
};

/** The collection of bookings. */
export const BOOKINGS: Resource<Booking> = resource(BOOKING_DECLARATION);

/** Guests, who are invited once, whichever account invites them. */
export const GUESTS: Resource<Guest> = resource({
  name: "guests",
  item: "Guest",
  tag: { name: "Guests", description: "The guests of an account" },
  noun: ["a guest", "guests"],
  fields: GUEST_FIELDS,
  filters: [],
  readableBy: "owner",
  writableBy: "owner",
  rules: [{
    error: GUEST_GONE,
    check: ({ item, before }) =>
      before?.state === "gone" && item.state !== "gone" ? "The field state must stay gone." : undefined,
  }],
  extend: [unique("email"), exists(BOOKINGS, "bookingId")],
  examples: { item: { email: "ann@example.com", state: "invited" }, change: { state: "gone" } },
});

/** A catalogue of rooms, bookings and guests. */
export const OF_ROOMS: Catalogue = { ...OF_THINGS, title: "Office", resources: [ROOMS, BOOKINGS, GUESTS] };

const LIMITS = { minute: 1_000_000, day: 1_000_000 };
const OPERATOR = "the-operators-token-in-the-tests";

/** The whole service with the room 1, and two accounts, Ann and Ben. */
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
    await office.addRooms(1);
    return Object.assign(office, { ann: ann.apiKey, ben: ben.apiKey });
  }

  /** Another process on the same KV. */
  override beside(options?: HarnessOptions): Office {
    const other = new Office(this.kv, { catalogue: OF_ROOMS, operatorToken: OPERATOR, ...options });
    return Object.assign(other, { ann: this.ann, ben: this.ben, isFirst: false });
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
  book(key: string, booking: Partial<Booking> = {}, request: HarnessRequest = {}): Promise<Response> {
    return this.fetch("POST /v1/bookings", { key, json: { ...REVIEW, ...booking }, ...request });
  }

  /** Adds a guest. */
  invite(key: string, email: string, guest: Partial<Guest> = {}): Promise<Response> {
    return this.fetch("POST /v1/guests", { key, json: { email, state: "invited", ...guest } });
  }

  /** The rows of hooks, with their JSON, by their keys without the generation. */
  async ownRows(): Promise<(readonly [string, unknown])[]> {
    const rows = await Array.fromAsync(this.kv.list<Uint8Array>({ prefix: ["own"] }));
    return rows.map((
      { key: [, name, _, ...key], value },
    ) => [[name, ...key].join(), JSON.parse(new TextDecoder().decode(value))]);
  }
}

/** Asserts that the rows of hooks are those that follow from the items, and that all references are to items. */
export async function assertExact(kv: Deno.Kv): Promise<void> {
  const read = async (prefix: Deno.KvKey) =>
    await Array.fromAsync(kv.list<Uint8Array>({ prefix }), ({ key, value }) => {
      const [json = ""] = new TextDecoder().decode(value).split("\n");
      return [key, JSON.parse(json)] as const;
    });
  const itemsOf = async (name: string) => (await read(["items", name])).map(([, item]) => item);
  const [rooms, bookings, guests] = await Promise.all(["rooms", "bookings", "guests"].map(itemsOf));
  const expected = new Map<string, unknown>();
  const count = (name: string, own: string, field: string, referring = bookings, to = rooms) => {
    for (const { id, [field]: other } of referring ?? []) {
      if (other === undefined) continue;
      assert(to?.some(({ id }) => id === other), `${name} ${id} refers to ${other}, which is gone`);
      const key = [name, own, other].join();
      expected.set(key, Number(expected.get(key) ?? 0) + 1);
    }
  };
  count("bookings", "exists(rooms, roomId)", "roomId");
  count("guests", "exists(bookings, bookingId)", "bookingId", guests, bookings);
  for (const { id, roomId, startsAt, state } of bookings ?? []) {
    const slot = ["bookings", "slot", roomId, dayOf(startsAt)].join();
    assert(state !== "confirmed" || !expected.has(slot), `${slot} is taken twice`);
    if (state === "confirmed") expected.set(slot, id);
  }
  const emails = (guests ?? []).map(({ email }) => email);
  assertEquals(new Set(emails).size, emails.length, "An email is there twice");
  for (const { id, email } of guests ?? []) {
    expected.set(["guests", "unique(email)", hash("sha256", JSON.stringify(email))].join(), id);
  }
  const own = (await read(["own"])).map(([[, name, , ...key], value]) =>
    [[name, ...key].join(), value] as const
  );
  assertEquals(new Map(own), new Map([...expected].sort()));
}

/** The id of the item in a response. */
export async function idIn(response: Response): Promise<number> {
  return (await response.json()).id;
}
