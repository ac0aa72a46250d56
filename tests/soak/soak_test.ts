import { assertEquals } from "@std/assert";
import { crash } from "./crash.ts";
import { disk } from "./disk.ts";
import { overload } from "./overload.ts";
import { type Effort, type Finding, FULL, type Part } from "./part.ts";

/** Small enough for a test. */
const BRIEF: Effort = {
  ...FULL,
  kills: 5,
  connections: 300,
  minDuration: 1,
  // Other tests run concurrently.
  maxSlowdown: 200,
  addresses: 12_000,
};

for (
  const [promise, part] of [
    ["loses nothing and applies nothing twice if it and its KV server are killed under mixed load", crash],
    ["serves other clients during an overload, in bounded memory", overload],
    ["returns 503 while the disk is full, and recovers without a restart", disk],
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
