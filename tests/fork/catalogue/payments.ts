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
  filters: [],
  readableBy: "owner",
  writableBy: "operator",
  rules: [{
    check: ({ item, before, by }) =>
      before && item !== before && by !== "service"
        ? "The field cents and all others must stay as they are."
        : undefined,
  }],
  extend: [exists(INVOICES, "invoiceId")],
  examples: { item: { invoiceId: 1, cents: 12_000 }, change: {} },
});
