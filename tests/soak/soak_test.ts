import { assertEquals } from "@std/assert";
import { contention } from "./contention.ts";
import { crash } from "./crash.ts";
import { disk } from "./disk.ts";
import { month } from "./month.ts";
import { overload } from "./overload.ts";
import { type Effort, type Finding, FULL, type Part } from "./part.ts";
import { storeCrash } from "./store_crash.ts";

/** As much as a test may take. */
const BRIEF: Effort = {
  ...FULL,
  kills: 5,
  storeKills: 2,
  stops: 0,
  seconds: 3,
  connections: 300,
  siege: 1,
  // Others' tests run beside it.
  patience: 200,
  addresses: 12_000,
  weeks: 2,
  sessions: 1,
};

for (
  const [promise, part] of [
    ["loses and doubles nothing when it is killed under mixed load", crash],
    ["loses and doubles nothing when the server of its store is killed", storeCrash],
    [
      "of three processes stores just the changes it accepted when they are killed",
      contention,
    ],
    ["serves others when it is crowded, in bounded memory", overload],
    ["answers 503 while the disk is full, and recovers by itself", disk],
    ["keeps no more rows from week to week", month],
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
