// Valid requests to the operations of the product's parts: tests/catalogue/operations.ts of the fork.
import { OPERATOR_TOKEN } from "../support/desk.ts";
import type { Harness } from "../support/harness.ts";
import type { Good } from "../support/operations.ts";

export const OWN: Readonly<Record<string, Good>> = {
  cancelBooking: {
    params: { bookingId: "1" },
    seed: addBooking,
    changes: ["items", "items_by", "own", "versions"],
  },
  payInvoice: {
    params: { invoiceId: "1" },
    json: { cents: 1_000 },
    seed: sendInvoice,
    errors: { not_payable: addInvoice },
    status: 201,
    changes: ["ids", "items", "items_by", "own", "versions"],
  },
};

/** Adds an invoice of the account. */
async function addInvoice(service: Harness, accountId: string): Promise<void> {
  const invoice = { number: "1", customer: "Ann", totalCents: 1_000, dueOn: "2027-02-01" };
  await requireStatus(service, "POST /operator/v1/invoices", { ...invoice, accountId }, 201);
}

async function sendInvoice(service: Harness, accountId: string): Promise<void> {
  await addInvoice(service, accountId);
  await requireStatus(service, "PATCH /operator/v1/invoices/1", { state: "sent" }, 200);
}

async function requireStatus(
  service: Harness,
  target: string,
  json: object,
  expected: number,
): Promise<void> {
  const { status } = await service.fetch(target, { key: OPERATOR_TOKEN, json });
  if (status !== expected) throw new Error(`${target} returns ${status}`);
}

/** Adds a room, and a confirmed booking of the account. */
async function addBooking(service: Harness, accountId: string): Promise<void> {
  const booking = {
    roomId: 1,
    title: "Review",
    startsAt: "2027-01-11T09:00:00Z",
    endsAt: "2027-01-11T10:00:00Z",
    state: "confirmed",
  };
  await requireStatus(service, "POST /operator/v1/rooms", { name: "Blue", seats: 8, hasScreen: true }, 201);
  await requireStatus(service, "POST /operator/v1/bookings", { ...booking, accountId }, 201);
}
