// The harness with rooms that operators add, bookings that only their account sees, and guests, whose email is unique.
import { type Booking, BOOKINGS } from "../fork/catalogue/bookings.ts";
import { ROOMS } from "../fork/catalogue/rooms.ts";
import {
  type Catalogue,
  exists,
  type ItemOf,
  type Resource,
  resource,
  unique,
} from "../../src/resource/mod.ts";
import { int64, optional, text } from "../../src/web/schema.ts";
import type { HarnessRequest } from "./client.ts";
import { OPERATOR_TOKEN } from "./desk.ts";
import { Harness, type HarnessOptions } from "./harness.ts";
import { OF_THINGS } from "./things.ts";

export { BOOKINGS, ROOMS };

const GUEST_FIELDS = {
  email: text({ max: 100, description: "Where the guest is reached" }),
  bookingId: optional(int64({ description: "The booking that the guest is invited to" })),
};

/** A guest. */
export type Guest = ItemOf<typeof GUEST_FIELDS>;

const GUESTS: Resource<Guest> = resource({
  name: "guests",
  item: "Guest",
  tag: { name: "Guests", description: "The guests of an account" },
  noun: ["a guest", "guests"],
  fields: GUEST_FIELDS,
  filters: [],
  readableBy: "owner",
  writableBy: "owner",
  extend: [unique("email", { among: "everyone" }), exists(BOOKINGS, "bookingId")],
  examples: { item: { email: "ann@example.com" }, change: { email: "ben@example.com" } },
});

/** A catalogue of rooms, bookings and guests. */
export const OF_ROOMS: Catalogue = { ...OF_THINGS, title: "Office", resources: [ROOMS, BOOKINGS, GUESTS] };

/** A room to add. */
export const BLUE = { name: "Blue", seats: 8, hasScreen: true } as const;
/** A booking to add. */
export const REVIEW = {
  roomId: 1,
  title: "Review",
  startsAt: "2027-01-11T09:00:00Z",
  endsAt: "2027-01-11T10:00:00Z",
  state: "planned",
} as const;

const LIMITS = { minute: 1_000_000, day: 1_000_000 };
const OFFICE: HarnessOptions & { readonly operatorToken: string } = {
  catalogue: OF_ROOMS,
  operatorToken: OPERATOR_TOKEN,
};

/** The whole service with the room 1, and the keys of two accounts, Ann and Ben. */
export class Office extends Harness {
  ann: string = "";
  ben: string = "";

  /** Creates one on a new KV in memory. */
  static override async open(options?: HarnessOptions): Promise<Office> {
    const office = new Office(await Deno.openKv(":memory:"), { ...OFFICE, ...options });
    const [ann, ben] = [await office.createAccount(LIMITS), await office.createAccount(LIMITS)];
    await office.addRooms(1);
    return Object.assign(office, { ann: ann.apiKey, ben: ben.apiKey });
  }

  /** Another process on the same KV. */
  override beside(options?: HarnessOptions): Office {
    const other = new Office(this.kv, { ...OFFICE, ...options });
    return Object.assign(other, { ann: this.ann, ben: this.ben, isFirst: false });
  }

  /** Sends a request of the operator, such as `operate("POST /operator/v1/rooms")`. */
  operate(target: string, request: HarnessRequest = {}): Promise<Response> {
    return this.fetch(target, { key: OFFICE.operatorToken, ...request });
  }

  /** The id of an account. */
  async idOf(key: string): Promise<string> {
    return (await (await this.fetch("GET /v1/account", { key })).json()).id;
  }

  /** Adds rooms. Resolves to their ids. */
  async addRooms(count: number): Promise<number[]> {
    const ids: number[] = [];
    while (ids.length < count) {
      ids.push(await idIn(await this.operate("POST /operator/v1/rooms", { json: BLUE })));
    }
    return ids;
  }

  /** Adds a booking. */
  book(key: string, booking: Partial<Booking> = {}, request: HarnessRequest = {}): Promise<Response> {
    return this.fetch("POST /v1/bookings", { key, json: { ...REVIEW, ...booking }, ...request });
  }

  /** Adds a guest. */
  invite(key: string, email: string, guest: Partial<Guest> = {}): Promise<Response> {
    return this.fetch("POST /v1/guests", { key, json: { email, ...guest } });
  }

  /** The rows of hooks, with their JSON, by their keys without the generation. */
  async ownRows(): Promise<(readonly [string, unknown])[]> {
    const rows = await Array.fromAsync(this.kv.list<Uint8Array>({ prefix: ["own"] }));
    return rows.map(({ key: [, name, _, ...key], value }) =>
      [[name, ...key].join(), JSON.parse(new TextDecoder().decode(value))] as const
    );
  }
}

/** The id of the item in a response. */
export async function idIn(response: Response): Promise<number> {
  return (await response.json()).id;
}
