import { MessageStore } from "../../src/messages/message_store.ts";
import { Transactions } from "../../src/store/transactions.ts";
import { sweepAll } from "../../src/sweeper.ts";
import type { HarnessRequest } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { findFaults } from "../support/stored_rows.ts";
import { NOON } from "../support/time.ts";
import { atLeast, atMost, type Effort, equal, exactly, type Finding, type Note } from "./part.ts";

const DAY = 24 * 3_600_000;
/** Long enough for even the rows kept longest, the totals of 90 days, to start being deleted. */
const WARM_UP_DAYS = 100;
const REGULARS = 4;
const ANIMALS = 5;
/** By how much the number of markers may vary. */
const MARKERS = 20;

/** Simulates weeks of traffic, and counts the rows after each week. */
export async function month(
  { weeks, sessions }: Pick<Effort, "weeks" | "sessions">,
  note: Note,
): Promise<Finding[]> {
  using kv = await Deno.openKv(":memory:");
  const creator = new Harness(kv);
  const regulars: Regular[] = [];
  while (regulars.length < REGULARS) regulars.push(new Regular((await creator.createAccount()).apiKey));
  const counts: Map<string, number>[] = [];
  let requests = 0;
  let errors = 0;

  for (let day = 0; day < WARM_UP_DAYS + 7 * weeks; day++) {
    // Each day has a new process, which is killed at the end: it does not clean up.
    const service = new Harness(kv);
    service.expectsErrors = true; // They are counted.
    for (let session = 0; session < sessions; session++) {
      service.now = NOON + (day + session / sessions) * DAY;
      const used = regulars.map((regular) => regular.useService(service));
      const sent = await Promise.all([...used, signUp(service, `198.51.100.${day % 250}`)]);
      requests += sent.reduce((sum, count) => sum + count);
      await takeMessages(service);
      await sweepAll(service.app.sweeps, service.now, {
        error: () => errors++,
        command() {},
        flushed: () => Promise.resolve(),
      });
    }
    await service.stop();
    errors += service.errors.length;
    if (day >= WARM_UP_DAYS && (day - WARM_UP_DAYS) % 7 === 6) counts.push(await countRows(kv));
    if (day % 50 === 0) note(`month: day ${day}`);
  }

  const [first, last] = [counts[0] ?? new Map(), counts.at(-1) ?? new Map()];
  // The number of markers depends on the timing of commits.
  const grown = [...last].filter(([kind, count]) => kind !== "commits" && count > (first.get(kind) ?? 0));
  const sizes = counts.map((week) => week.values().reduce((sum, count) => sum + count, 0));
  return [
    atLeast("requests in simulated days", requests, WARM_UP_DAYS),
    exactly("errors", errors, 0),
    equal(
      "kinds of rows that grow from week to week",
      grown.map(([kind]) => kind).join(", ") || "none",
      "none",
    ),
    atLeast("rows after the first week", sizes[0] ?? 0, 1),
    atMost(
      "additional rows after any later week",
      Math.max(0, ...sizes.map((size) => size - (sizes[0] ?? 0))),
      MARKERS,
    ),
    exactly("rows without their counterpart", (await findFaults(kv)).length, 0),
  ];
}

/** A client that uses the service every session. */
class Regular {
  readonly #key: string;
  readonly #animals: number[] = [];

  constructor(key: string) {
    this.#key = key;
  }

  /** Adds, changes and lists animals, and removes old ones. Resolves to the number of requests. */
  async useService(service: Harness): Promise<number> {
    const json = { name: "Rex", categoryId: 1, message: "Hello" };
    const headers = { "idempotency-key": `${service.now}` };
    const { id } = await (await this.#send(service, "POST /v1/pets", { json, headers })).json();
    await this.#send(service, "POST /v1/messages", { json, headers });
    await this.#send(service, `PATCH /v1/pets/${id}`, { json: { status: "sold" } });
    await this.#send(service, "GET /v1/pets?status=sold");
    if (this.#animals.push(id) <= ANIMALS) return 4;
    await this.#send(service, `DELETE /v1/pets/${this.#animals.shift()}`);
    return 5;
  }

  async #send(service: Harness, target: string, request: HarnessRequest = {}): Promise<Response> {
    const response = await service.fetch(target, { key: this.#key, ...request });
    if (!response.ok) throw new Error(`${target}: ${response.status}`);
    return response;
  }
}

/** Creates an account that is never used. */
async function signUp(service: Harness, address: string): Promise<number> {
  service.address = address;
  const { status } = await service.fetch("POST /v1/accounts", { json: { name: "idle" } });
  if (status !== 201) throw new Error(`Sign-up: ${status}`);
  return 1;
}

async function takeMessages({ store }: Harness): Promise<void> {
  const messages = new MessageStore(store);
  const transactions = new Transactions(store, () => 0);
  const waiting = await Array.fromAsync(messages.list(1_000));
  await Promise.all(waiting.map((message) => transactions.run(messages.removing(message))));
}

/** Number of rows of each kind. */
async function countRows(kv: Deno.Kv): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for await (const { key: [kind] } of kv.list({ prefix: [] })) {
    counts.set(String(kind), (counts.get(String(kind)) ?? 0) + 1);
  }
  return counts;
}
