import { ApiError, type ErrorKind, integer, object } from "../../../../src/declare.ts";
import {
  ACCESS,
  type Acting,
  type Call,
  createOnce,
  ERRORS,
  IDEMPOTENCY_KEY,
  type Items,
  of,
  type Operation,
  operation,
  type Part,
  stringifyJson,
  type Transaction,
} from "../../../../src/part.ts";
import { type Invoice, INVOICES, MOST_CENTS } from "../invoices.ts";
import { type Payment, PAYMENTS } from "../payments.ts";

/** Pays invoices. A service without invoices has nothing to pay. */
export const PAYING: Part = {
  operations({ items }) {
    const [invoices, payments] = [items.find(of(INVOICES)), items.find(of(PAYMENTS))];
    return invoices && payments ? [payInvoice(invoices, payments)] : [];
  },
};

const NOT_PAYABLE: ErrorKind = {
  code: "not_payable",
  status: 409,
  means: "The invoice was not sent, or the payments would exceed its total.",
  todo: "Read the invoice, and pay what is left of it.",
};

const PAYMENT = { cents: integer(1, MOST_CENTS, { description: "What is paid" }) };

/** Adds a payment, and adds its amount to that of its invoice, which is paid once nothing is left. */
export function paying(
  invoices: Items<Invoice>,
  payments: Items<Payment>,
  acting: Acting,
  { invoiceId, cents }: Pick<Payment, "cents"> & { readonly invoiceId: number },
): Transaction<Payment> {
  return {
    decide(rows, write) {
      const own = invoices.in(rows, write, acting);
      const invoice = own.get(invoiceId);
      if (invoice === null) throw new ApiError(INVOICES.errors.notFound, `There is no invoice ${invoiceId}.`);
      const { state, totalCents, paidCents } = invoice.item;
      const left = totalCents - paidCents - cents;
      if (state !== "sent" || left < 0) {
        throw new ApiError(NOT_PAYABLE, "The invoice cannot be paid by that much.");
      }
      own.set(invoice, {
        ...invoice.item,
        paidCents: paidCents + cents,
        state: left === 0 ? "paid" : "sent",
      });
      return payments.in(rows, write, acting).add({ invoiceId, cents });
    },
  };
}

function payInvoice(invoices: Items<Invoice>, payments: Items<Payment>): Operation {
  const id = "payInvoice";
  return operation({
    id,
    method: "POST",
    path: "/v1/invoices/{invoiceId}/payments",
    access: ACCESS.key,
    collections: [INVOICES.name, PAYMENTS.name],
    tag: PAYMENTS.tag,
    summary: "Pay an invoice",
    params: { invoiceId: integer(1, Number.MAX_SAFE_INTEGER, { description: "The invoice" }) },
    headers: { "Idempotency-Key": IDEMPOTENCY_KEY },
    body: object(PAYMENT, { examples: [{ cents: 12_000 }] }),
    answers: {
      201: { description: "The payment", body: PAYMENTS.schemas.item, headers: ["Idempotency-Replayed"] },
    },
    errors: [INVOICES.errors.notFound, NOT_PAYABLE, ERRORS.idempotency_key_reused],
  }, ({ params, headers, body, bytes }, call: Call) => {
    const asked = { ...params, ...body };
    return createOnce<Payment>(headers["Idempotency-Key"], call, {
      ...{ operation: `${id} ${params.invoiceId}`, bytes, body, fields: PAYMENT },
      creation: paying(invoices, payments, { ...call.acting, by: "service" }, asked),
      reply: (payment) => ({ status: 201, headers: {}, body: stringifyJson(payment) }),
    });
  });
}
