import { setTimeout as delay } from "node:timers/promises";
import { ITEM, PATH } from "../../process/shipped.ts";
import { interrupted } from "../terminal.ts";

/** An account under load, and the outcomes of its requests. */
export interface Customer {
  readonly id: string;
  readonly key: string;
  admitted: number;
  refused: number;
  failed: number;
}

/** Which requests are sent. */
export interface Traffic {
  readonly origins: readonly string[];
  readonly customers: readonly Customer[];
  readonly isCreate: boolean;
  /** When to end, by `performance.now()`. */
  readonly end: number;
  /** Collects the latencies of responses, in ms. */
  readonly latencies: number[];
}

/** Sends one request after another on each connection. Customers and processes take turns. */
export async function sendClosedLoop(traffic: Traffic, connections: number): Promise<void> {
  let turn = 0;
  await Promise.all(Array.from({ length: connections }, async () => {
    while (performance.now() < traffic.end && !interrupted.aborted) await send(traffic, turn++);
  }));
}

/** Sends each customer's requests at a fixed rate, without waiting for responses. */
export async function sendOpenLoop(traffic: Traffic, perMinute: number): Promise<void> {
  const perMs = perMinute * traffic.customers.length / 60_000;
  const started = performance.now();
  const sent: Promise<void>[] = [];
  while (performance.now() < traffic.end && !interrupted.aborted) {
    const due = (performance.now() - started) * perMs;
    while (sent.length < due) sent.push(send(traffic, sent.length));
    await delay(5);
  }
  await Promise.all(sent);
}

async function send(traffic: Traffic, turn: number): Promise<void> {
  const { origins, customers, isCreate, latencies } = traffic;
  const customer = customers[turn % customers.length];
  // Each customer uses every process.
  const origin = origins[(turn % customers.length + Math.floor(turn / customers.length)) % origins.length];
  if (customer === undefined) return;
  const started = performance.now();
  try {
    const response = await fetch(origin + PATH, {
      method: isCreate ? "POST" : "GET",
      headers: { authorization: `Bearer ${customer.key}`, "content-type": "application/json" },
      body: isCreate ? ITEM : null,
      signal: interrupted,
    });
    await response.bytes();
    latencies.push(performance.now() - started);
    if (response.ok) customer.admitted++;
    else if (response.status === 429) customer.refused++;
    else customer.failed++;
  } catch {
    customer.failed++;
  }
}
