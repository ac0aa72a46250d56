import {
  createdAt,
  date,
  type ErrorKind,
  integer,
  type ItemOf,
  ofService,
  oneOf,
  optional,
  type Resource,
  resource,
  text,
  unique,
} from "../../../src/declare.ts";

/** The most that an invoice can come to, in cents. */
export const MOST_CENTS = 1_000_000_000;

const FIELDS = {
  number: text({ max: 20, description: "Its number, once in an account" }),
  customer: text({ max: 100, description: "Who pays it" }),
  totalCents: integer(1, MOST_CENTS, { description: "What it comes to" }),
  dueOn: date({ description: "When it is to be paid" }),
  state: optional(oneOf(["draft", "sent", "paid", "void"], { description: "State" }), "draft"),
  paidCents: ofService(optional(integer(0, MOST_CENTS, { description: "What has been paid" }), 0)),
  createdAt: createdAt(),
};

/** An invoice. */
export type Invoice = ItemOf<typeof FIELDS>;

/** An invoice has not the state that a change needs. */
export const INVOICE_STATE: ErrorKind = {
  code: "invoice_state",
  status: 409,
  means: "The state of the invoice does not allow this.",
  todo: "Read the invoice, and then decide.",
};

/** The states that follow each state. Only payments make an invoice paid. */
const NEXT: Readonly<Record<Invoice["state"], readonly Invoice["state"][]>> = {
  draft: ["sent", "void"],
  sent: ["void"],
  paid: [],
  void: [],
};

/** Invoices, which only their own account sees. */
export const INVOICES: Resource<Invoice> = resource({
  name: "invoices",
  item: "Invoice",
  tag: { name: "Invoices", description: "The invoices of an account" },
  noun: ["an invoice", "invoices"],
  fields: FIELDS,
  filters: ["state"],
  sorts: ["dueOn"],
  readableBy: "owner",
  writableBy: "owner",
  rules: [
    {
      error: INVOICE_STATE,
      check({ item, before, by }) {
        if (before === undefined) {
          return item.state === "draft" ? undefined : "The field state must be draft at first.";
        }
        if (item.state === before.state || by === "service" || NEXT[before.state].includes(item.state)) {
          return undefined;
        }
        return `The field state cannot become ${item.state}, because it is ${before.state}.`;
      },
      deletionErrors: [INVOICE_STATE],
      checkDeletion: ({ before }) => before.state === "draft" ? undefined : "Only a draft can be deleted.",
    },
    {
      check: ({ item: { paidCents, totalCents } }) =>
        paidCents <= totalCents
          ? undefined
          : "The field totalCents must not be less than what has been paid.",
    },
  ],
  extend: [unique("number", { among: "owner" })],
  examples: {
    item: { number: "2027-1", customer: "Ann", totalCents: 12_000, dueOn: "2027-02-01" },
    change: { state: "sent" },
  },
});
