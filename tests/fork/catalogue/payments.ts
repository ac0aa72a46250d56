import {
  createdAt,
  exists,
  int64,
  integer,
  type ItemOf,
  type Resource,
  resource,
} from "../../../src/declare.ts";
import { INVOICES, MOST_CENTS } from "./invoices.ts";

const FIELDS = {
  invoiceId: int64({ description: "The invoice" }),
  cents: integer(1, MOST_CENTS, { description: "What was paid" }),
  createdAt: createdAt(),
};

/** A payment. */
export type Payment = ItemOf<typeof FIELDS>;

/** Payments, which are added by `POST /v1/invoices/{invoiceId}/payments` alone, and never changed. */
export const PAYMENTS: Resource<Payment> = resource({
  name: "payments",
  item: "Payment",
  tag: { name: "Payments", description: "The payments of invoices" },
  noun: ["a payment", "payments"],
  fields: FIELDS,
  filters: ["invoiceId"],
  readableBy: "owner",
  writableBy: "operator",
  rules: [{
    check: ({ item, before, by }) =>
      by === "service" || item === before ? undefined : "The field cents is set by paying the invoice alone.",
    checkDeletion: ({ by }) => by === "service" ? undefined : "The field cents and its payment stay.",
  }],
  extend: [exists(INVOICES, "invoiceId")],
  examples: { item: { invoiceId: 1, cents: 12_000 }, change: {} },
});
