import { pause } from "../../src/base/time.ts";

// Clients that behave well. They run in their own process, so that nothing else distorts the measurement.

/** What to send, how often, and for how long. */
export interface Order {
  readonly origin: string;
  /** Path of the list that they read. */
  readonly path: string;
  readonly key: string;
  readonly clients: number;
  readonly everyMs: number;
  readonly forMs: number;
}

/** The measurements, printed as JSON. */
export interface Report {
  /** The 99th percentile of latency, in ms. */
  readonly p99: number;
  readonly answers: number;
  /** Number of requests that did not get 200. */
  readonly bad: number;
  /** Number of requests to /health that did not get 200. */
  readonly unhealthy: number;
}

if (import.meta.main) {
  const report = await behave(JSON.parse(Deno.args[0] ?? ""));
  Deno.stdout.writeSync(new TextEncoder().encode(JSON.stringify(report)));
}

async function behave({ origin, path, key, clients, everyMs, forMs }: Order): Promise<Report> {
  const end = performance.now() + forMs;
  const waits: number[] = [];
  const counts = { bad: 0, unhealthy: 0 };
  const headers = { authorization: `Bearer ${key}` };

  async function list(): Promise<void> {
    while (performance.now() < end) {
      const started = performance.now();
      if (await statusOf(`${origin}${path}`, { headers }) !== 200) counts.bad++;
      waits.push(performance.now() - started);
      await pause(everyMs * (0.5 + Math.random()));
    }
  }

  async function checkHealth(): Promise<void> {
    while (performance.now() < end) {
      if (await statusOf(`${origin}/health`) !== 200) counts.unhealthy++;
      await pause(100);
    }
  }

  await Promise.all([checkHealth(), ...Array.from({ length: clients }, list)]);
  const sorted = waits.toSorted((a, b) => a - b);
  return { ...counts, answers: waits.length, p99: sorted[Math.floor(0.99 * sorted.length)] ?? NaN };
}

/** The status of the response; 0 if there is none. */
async function statusOf(url: string, init: RequestInit = {}): Promise<number> {
  try {
    const response = await fetch(url, init);
    await response.bytes();
    return response.status;
  } catch {
    return 0;
  }
}
