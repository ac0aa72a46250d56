// Counts what a request does. A count does not depend on how busy the machine is. Whoever imports this counts from then
// on, so import it before the service.
import { StatementSync } from "node:sqlite";

/** What is counted, except looks at a clock: timers of the service look at it, too, so their number is not exact. */
export const COUNTED = [
  "Headers.set",
  "then, catch",
  "RegExp.exec",
  "TextEncoder.encode",
  "JSON.stringify",
  "timers",
  "KV reads",
  "KV commits",
  "SQLite reads",
] as const;

/** How often each was called. */
export type Counts = Record<typeof COUNTED[number] | "clocks", number>;

const TOTALS: Counts = {
  "Headers.set": 0,
  "then, catch": 0,
  "RegExp.exec": 0,
  "TextEncoder.encode": 0,
  "JSON.stringify": 0,
  timers: 0,
  "KV reads": 0,
  "KV commits": 0,
  "SQLite reads": 0,
  clocks: 0,
};

count("Headers.set", Headers.prototype, "set");
// `catch` and `finally` call `then`; `await` does not.
count("then, catch", Promise.prototype, "then");
// `test`, `match`, `replace` and `split` call `exec`, too.
count("RegExp.exec", RegExp.prototype, "exec");
count("TextEncoder.encode", TextEncoder.prototype, "encode");
count("JSON.stringify", JSON, "stringify");
count("timers", globalThis, "setTimeout", "setInterval");
count("clocks", performance, "now");
count("clocks", Date, "now");
count("KV reads", Deno.Kv.prototype, "get", "getMany", "list");
count("KV commits", Deno.AtomicOperation.prototype, "commit");
count("SQLite reads", StatementSync.prototype, "get", "all");

/** Counts the calls of these methods of an object. */
function count(what: keyof Counts, object: object, ...names: readonly string[]): void {
  for (const name of names) {
    const method: unknown = Reflect.get(object, name);
    if (typeof method !== "function") throw new TypeError(`There is no ${name} to count`);
    Reflect.set(object, name, function (this: unknown, ...given: unknown[]): unknown {
      TOTALS[what]++;
      return Reflect.apply(method, this, given);
    });
  }
}

/** A clock that stands still. Its calls are counted. */
export function frozen(time: number): () => number {
  return () => {
    TOTALS.clocks++;
    return time;
  };
}

/** Resolves to what is counted until `work` has settled. */
export async function countedIn(work: () => Promise<void>): Promise<Counts> {
  const before = { ...TOTALS };
  await work();
  const counts = { ...TOTALS };
  for (const what of [...COUNTED, "clocks"] as const) counts[what] -= before[what];
  return counts;
}
