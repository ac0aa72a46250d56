// Valid requests to the operations of the product's parts: tests/catalogue/operations.ts of the fork.
import { OPERATOR_TOKEN } from "../../support/desk.ts";
import type { Harness } from "../../support/harness.ts";
import type { Good } from "../../support/operations.ts";

export const OWN: Readonly<Record<string, Good>> = {
  cancelBooking: {
    params: { bookingId: "1" },
    seed: addBooking,
    changes: ["items", "items_by", "own", "versions"],
  },
};

/** Adds a room, and a confirmed booking of the account. */
async function addBooking(service: Harness, accountId: string): Promise<void> {
  const booking = {
    roomId: 1,
    title: "Review",
    startsAt: "2027-01-11T09:00:00Z",
    endsAt: "2027-01-11T10:00:00Z",
    state: "confirmed",
  };
  for (
    const [path, json] of [
      ["rooms", { name: "Blue", seats: 8, hasScreen: true }],
      ["bookings", { ...booking, accountId }],
    ] as const
  ) {
    const { status } = await service.fetch(`POST /operator/v1/${path}`, { key: OPERATOR_TOKEN, json });
    if (status !== 201) throw new Error(`${path} cannot be added: ${status}`);
  }
}
