import { assertEquals } from "@std/assert";
import { ACCOUNTS, ACCOUNTS_VERSION } from "../../src/accounts/account.ts";
import { Admissions } from "../../src/app/admission.ts";
import { Permits } from "../../src/limits/permits.ts";
import { operation } from "../../src/web/operation.ts";
import { createApp } from "../../src/app/app.ts";
import { InFlight } from "../../src/web/in_flight.ts";
import { decodeJson, encodeJson } from "../../src/engine/row.ts";
import type { Decided, Transaction, Write } from "../../src/engine/transaction.ts";
import { Transactions } from "../../src/engine/transactions.ts";
import { Versions } from "../../src/engine/versions.ts";
import type { Call } from "../../src/resource/call.ts";
import { Harness, RecordingService } from "../support/harness.ts";

/** Increments the number in a row. */
function counting(key: Deno.KvKey): Transaction<undefined> {
  return {
    queue: "changes",
    reads: [key],
    decide(rows, write) {
      const entry = rows.get(key);
      write.set(key, encodeJson((entry ? decodeJson<number>(entry) : 0) + 1));
    },
  };
}

/** An app beside a service, with one operation, `POST /v1/work`, whose handler is `work`. */
function appBeside(service: Harness, work: (call: Call, versions: Versions) => Promise<unknown>) {
  const { store, metrics } = service;
  const clock = () => service.now;
  const versions = new Versions(store);
  const accounts = versions.watch(ACCOUNTS_VERSION);
  const transactions = new Transactions(store, { clock });
  const permits = new Permits({ store, transactions, holders: ACCOUNTS, clock });
  const inFlight = new InFlight();
  const app = createApp({
    operations: [
      operation(
        { id: "work", method: "POST", path: "/v1/work", access: "key", summary: "" },
        async (_, call: Call) => (await work(call, versions), new Response("done")),
      ),
    ],
    admissions: new Admissions({ store, versions, accounts, environment: "staging", permits, metrics }),
    transactions,
    metrics,
    realm: "tests",
    hasToken: { operator: () => false, metrics: () => false },
    environment: "staging",
    publicUrl: undefined,
    onDeploy: false,
    clock,
    clientAddress: () => "192.0.2.1",
    inFlight,
    log: { error() {}, operator() {}, flushed: () => Promise.resolve() },
  });
  return {
    async stop(): Promise<void> {
      await inFlight.stop();
      await permits.settle();
    },
    async send(method: string, key: string): Promise<number> {
      const headers = { authorization: `Bearer ${key}` };
      const request = new Request("http://localhost/v1/work", { method, headers });
      const remoteAddr: Deno.NetAddr = { transport: "tcp", hostname: "192.0.2.1", port: 1 };
      return (await app(request, { remoteAddr })).status;
    },
  };
}

Deno.test("transact() includes the check only in a handler's first commit, so nothing is written twice", async () => {
  await using service = await RecordingService.open();
  const { time } = service;
  const { account: { id }, apiKey } = await service.createAccount("business");
  const { stop, send } = appBeside(service, async (call, versions) => {
    await call.transact(counting(["first"]));
    await service.accounts.change(id, { name: "new" });
    await versions.check();
    await call.transact(counting(["second"]));
  });
  // Requests in quick succession create a lease, which admits the next one without a check of versions.
  for (let count = 0; count < 8; count++) {
    assertEquals(await time.until(send("DELETE", apiKey), 1_000), 405);
  }

  const status = await time.until(send("POST", apiKey), 1_000);

  const numbers = ["first", "second"].map((key) => service.fake.rows.get(JSON.stringify([key])));
  assertEquals([status, ...numbers.map((row) => row && decodeJson<number>(row))], [200, 1, 1]);
  await time.until(stop(), 1_000);
});

const ROW = ["row"];
const FAULTS: readonly (readonly [string, (write: Write) => Decided, Deno.KvKey?])[] = [
  ["sets a value over 64 KiB", (write) => write.set(ROW, new Uint8Array(65_537))],
  ["sets a value that is neither bytes nor a count", (write) => write.set(ROW, "text" as never)],
  ["sets a row with a key over 2 KiB", (write) => write.set(["row", "\0".repeat(1_100)], encodeJson(1))],
  ["deletes a row with a part that no key has", (write) => write.delete(["row", null as never])],
  ["sets a row with an empty key", (write) => write.set([], encodeJson(1))],
  ["reads a row with a key over 2 KiB", () => null, ["row", "x".repeat(2_048)]],
  // @ts-expect-error By type, it cannot.
  ["decides later", async (write) => write.set(ROW, await Promise.resolve(encodeJson(1)))],
];
for (const [what, decide, key = ROW] of FAULTS) {
  Deno.test(`transact() rejects a transaction alone if it ${what}`, async () => {
    await using service = await Harness.open();
    const { apiKey } = await service.createAccount("business");
    const faulty: Transaction<Decided> = {
      queue: "changes",
      reads: [key],
      decide: (_, write) => decide(write),
    };
    const jobs = [faulty, ...Array.from({ length: 40 }, (_, number) => counting(["counts", number]))];
    const { stop, send } = appBeside(service, ({ transact }) => transact(jobs.pop() ?? faulty));

    const statuses = await Promise.all(jobs.map(() => send("POST", apiKey)));

    assertEquals(Object.groupBy(statuses, String), { 200: Array(40).fill(200), 500: [500] });
    const rows = await Array.fromAsync(service.kv.list({ prefix: ["counts"] }));
    assertEquals([rows.length, (await service.kv.get(ROW)).versionstamp], [40, null]);
    await stop();
  });
}
