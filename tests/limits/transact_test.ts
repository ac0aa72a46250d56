import { assertEquals } from "@std/assert";
import { ACCOUNTS, ACCOUNTS_VERSION } from "../../src/accounts/account.ts";
import { Admissions } from "../../src/app/admission.ts";
import { Permits } from "../../src/limits/permits.ts";
import { operation } from "../../src/web/operation.ts";
import { createApp } from "../../src/app/app.ts";
import { InFlight } from "../../src/web/in_flight.ts";
import { decodeJson, encodeJson } from "../../src/engine/row.ts";
import type { Transaction } from "../../src/engine/transaction.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { Versions } from "../../src/engine/versions.ts";
import { RecordingService } from "../support/harness.ts";

/** Increments the number in a row. */
function counting(key: Deno.KvKey): Transaction<void> {
  return {
    queue: "changes",
    reads: [key],
    decide(rows, write) {
      const entry = rows.get(key);
      write.set(key, encodeJson((entry ? decodeJson<number>(entry) : 0) + 1));
    },
  };
}

Deno.test("transact() includes the check only in a handler's first commit, so nothing is written twice", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const { store } = service;
  const { account: { id }, apiKey } = await service.createAccount("business");
  const versions = new Versions(store);
  const accounts = versions.watch(ACCOUNTS_VERSION);
  const clock = () => service.now;
  const transactions = new Transactions(store, { clock });
  const permits = new Permits({ store, transactions, holders: ACCOUNTS, clock });
  const app = createApp({
    operations: [
      operation(
        { id: "twice", method: "POST", path: "/v1/twice", access: "key", summary: "" },
        async (_, call) => {
          await call.transact(counting(["first"]));
          await service.accounts.change(id, { name: "new" });
          await versions.check();
          await call.transact(counting(["second"]));
          return new Response("done");
        },
      ),
    ],
    admissions: new Admissions({
      store,
      versions,
      accounts,
      environment: "staging",
      permits,
      metrics: service.metrics,
    }),
    transactions,
    metrics: service.metrics,
    realm: "tests",
    hasToken: { operator: () => false, metrics: () => false },
    environment: "staging",
    publicUrl: undefined,
    onDeploy: false,
    clock,
    clientAddress: () => "192.0.2.1",
    inFlight: new InFlight(),
    log: { error() {}, operator() {}, flushed: () => Promise.resolve() },
  });
  const send = async (method: string) => {
    const headers = { authorization: `Bearer ${apiKey}` };
    const request = new Request("http://localhost/v1/twice", { method, headers });
    const remoteAddr: Deno.NetAddr = { transport: "tcp", hostname: "192.0.2.1", port: 1 };
    return (await time.until(Promise.resolve(app(request, { remoteAddr })), 1_000)).status;
  };
  // Requests in quick succession create a lease, which admits the next one without a check of versions.
  for (let count = 0; count < 8; count++) assertEquals(await send("DELETE"), 405);

  const status = await send("POST");

  const numbers = ["first", "second"].map((key) => service.fake.rows.get(JSON.stringify([key])));
  assertEquals([status, ...numbers.map((row) => row && decodeJson<number>(row))], [200, 1, 1]);
  await time.until(permits.settle(), 1_000);
});
