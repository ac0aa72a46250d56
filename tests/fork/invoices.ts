// Tests of invoices and payments: tests/catalogue/invoices_test.ts of the fork.
import { assertEquals } from "@std/assert";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { call } from "../support/client.ts";
import { Harness } from "../support/harness.ts";

const BILL = { number: "2027-1", customer: "Ann", totalCents: 1_000, dueOn: "2027-02-01" };

/** The service, another process beside it, and the key of an account with an invoice that was sent. */
async function desk() {
  const service = await Harness.open({ catalogue: CATALOGUE });
  const { json } = await call(service, undefined, "POST /v1/accounts", { json: { name: "Ann" } });
  const key: string = Object(json).apiKey;
  await call(service, key, "POST /v1/invoices", { json: BILL });
  await call(service, key, "PATCH /v1/invoices/1", { json: { state: "sent" } });
  return { service, other: service.beside({ catalogue: CATALOGUE }), key };
}

const PAY = "POST /v1/invoices/1/payments";

Deno.test("payments that race on two processes pay an invoice once, and no payment exceeds it", async () => {
  const { service, other, key } = await desk();
  await using _service = service;
  await using _other = other;

  const paid = await Promise.all(
    Array.from(
      { length: 20 },
      (_, index) => call([service, other][index % 2] ?? service, key, PAY, { json: { cents: 70 } }),
    ),
  );

  const statuses = paid.map(({ status }) => status);
  assertEquals([statuses.filter((status) => status === 201).length, new Set(statuses).size], [14, 2]);
  const last = await call(other, key, PAY, { json: { cents: 20 } });
  const invoice = await call(service, key, "GET /v1/invoices/1");
  assertEquals([last.status, Object(invoice.json).state, Object(invoice.json).paidCents], [
    201,
    "paid",
    1_000,
  ]);
});

Deno.test("a payment that is repeated with its Idempotency-Key is paid once, and answered alike", async () => {
  const { service, other, key } = await desk();
  await using _service = service;
  await using _other = other;
  const request = { json: { cents: 400 }, headers: { "idempotency-key": "once" } };

  const [first, again] = [await call(service, key, PAY, request), await call(other, key, PAY, request)];

  assertEquals([first.status, again.json], [201, first.json]);
  const invoice = await call(service, key, "GET /v1/invoices/1");
  assertEquals(Object(invoice.json).paidCents, 400);
});
