import { assertEquals } from "@std/assert";
import { contention } from "./contention.ts";
import { crash } from "./crash.ts";
import { disk } from "./disk.ts";
import { month } from "./month.ts";
import { overload } from "./overload.ts";
import { type Effort, type Finding, FULL, type Part } from "./part.ts";
import { storeCrash } from "./store_crash.ts";

/** Small enough for a test. */
const BRIEF: Effort = {
  ...FULL,
  kills: 5,
  storeKills: 2,
  stops: 0,
  seconds: 3,
  connections: 300,
  minDuration: 1,
  // Other tests run concurrently.
  maxSlowdown: 200,
  addresses: 12_000,
  weeks: 2,
  sessions: 1,
};

for (
  const [promise, part] of [
    ["loses nothing and applies nothing twice if it is killed under mixed load", crash],
    ["loses nothing and applies nothing twice if its KV server is killed", storeCrash],
    ["stores exactly the accepted changes if competing processes are killed", contention],
    ["serves other clients during an overload, in bounded memory", overload],
    ["returns 503 while the disk is full, and recovers without a restart", disk],
    ["stores no more rows from week to week", month],
  ] satisfies [string, Part][]
) {
  Deno.test({
    name: `service ${promise}`,
    ignore: Deno.build.os !== "linux",
    fn: async () => assertEquals((await part(BRIEF, () => {})).filter(isBroken), []),
  });
}

function isBroken({ held }: Finding): boolean {
  return !held;
}
