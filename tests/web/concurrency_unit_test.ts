import { assertLess } from "@std/assert";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { ConcurrencyLimit } from "../../src/web/concurrency.ts";
import { upTo } from "../support/client.ts";

setFlagsFromString("--expose-gc");

/** Size of all objects that are in use, in bytes. */
function heapInUse(): number {
  runInNewContext("gc")();
  return Deno.memoryUsage().heapUsed;
}

Deno.test("ConcurrencyLimit keeps nothing of owners whose tasks have ended", async () => {
  const owners = upTo(20_000);
  const limit = new ConcurrencyLimit(owners.length, "tasks");
  const before = heapInUse();

  await Promise.all(owners.map((owner) => limit.run(() => Promise.resolve(), `${owner}`.padEnd(1_000))));

  assertLess(heapInUse() - before, 5_000_000); // The names have 20 MB.
});
