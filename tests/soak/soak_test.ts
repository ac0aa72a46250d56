import { assertEquals } from "@std/assert";
import { print } from "../../src/process/process.ts";
import { crash } from "./crash.ts";
import { disk } from "./disk.ts";
import { overload } from "./overload.ts";
import type { Effort, Part } from "./part.ts";

/** For `deno task soak`, which also prints what it measures. */
const FULL: Effort = {
  kills: 200,
  connections: 10_000,
  minDuration: 15,
  maxSlowdown: 25,
  addresses: 300_000,
};
/** Small enough for a test, beside others. */
const BRIEF: Effort = { kills: 3, connections: 300, minDuration: 1, maxSlowdown: 200, addresses: 3_000 };

const isFull = Deno.env.get("SOAK") === "full";
const note = isFull ? print : () => {};

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
    async fn() {
      const findings = await part(isFull ? FULL : BRIEF, note);

      for (const { promise, measured } of findings) note(`${promise}: ${measured}`);
      assertEquals(findings.filter(({ held }) => !held), []);
    },
  });
}
