import {
  ApiError,
  decodeJson,
  encodeJson,
  type ErrorKind,
  exists,
  type Hook,
  int64,
  type ItemOf,
  oneOf,
  optional,
  type Resource,
  resource,
  text,
  timestamp,
} from "../../../src/declare.ts";
import { ROOMS } from "./rooms.ts";

const FIELDS = {
  roomId: int64({ description: "The room" }),
  title: text({ max: 100, description: "What it is for" }),
  startsAt: timestamp({ description: "When it starts" }),
  endsAt: timestamp({ description: "When it ends, on the same day (UTC)" }),
  state: optional(oneOf(["planned", "confirmed", "cancelled"], { description: "State" }), "planned"),
};

/** A booking. */
export type Booking = ItemOf<typeof FIELDS>;

const ROOM_TAKEN: ErrorKind = {
  code: "room_taken",
  status: 409,
  means: "Another confirmed booking has the room on this day.",
  todo: "Choose another room or day.",
};
const BOOKING_CANCELLED: ErrorKind = {
  code: "booking_cancelled",
  status: 409,
  means: "The booking was cancelled.",
  todo: "Add another booking.",
};

/** No two confirmed bookings of a room share a day. */
const SLOT: Hook<Booking> = {
  name: "slot",
  errors: [ROOM_TAKEN],
  apply(rows, write, { id, before, after }) {
    for (const key of slotsOf(before)) write.delete(key);
    for (const key of slotsOf(after)) {
      const row = rows.get(key);
      if (row && decodeJson<number>(row) !== id) {
        throw new ApiError(ROOM_TAKEN, "The room is taken on that day.");
      }
      write.set(key, encodeJson(id));
    }
  },
};

/** The rows that a booking takes: the room's day, if it is confirmed. */
function slotsOf(booking: Booking | undefined): Deno.KvKey[] {
  if (booking?.state !== "confirmed") return [];
  return [["own", "bookings", "slot", booking.roomId, dayOf(booking.startsAt)]];
}

/** The day of a time, in UTC. */
function dayOf(time: string): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** Bookings, which only their own account sees. */
export const BOOKINGS: Resource<Booking> = resource({
  name: "bookings",
  item: "Booking",
  tag: { name: "Bookings", description: "The bookings of an account" },
  noun: ["a booking", "bookings"],
  fields: FIELDS,
  filters: ["state"],
  readableBy: "owner",
  writableBy: "owner",
  rules: [
    {
      check: ({ item: { startsAt, endsAt } }) =>
        Date.parse(startsAt) < Date.parse(endsAt) && dayOf(startsAt) === dayOf(endsAt)
          ? undefined
          : "The field endsAt must be after startsAt, on the same day (UTC).",
    },
    {
      error: BOOKING_CANCELLED,
      check: ({ item, before }) =>
        before?.state === "cancelled" && item.state !== "cancelled"
          ? "The field state must stay cancelled."
          : undefined,
    },
  ],
  extend: [exists(ROOMS, "roomId"), SLOT],
  examples: {
    item: {
      roomId: 1,
      title: "Review",
      startsAt: "2027-01-11T09:00:00Z",
      endsAt: "2027-01-11T10:00:00Z",
      state: "confirmed",
    },
    change: { roomId: 2 },
  },
});
