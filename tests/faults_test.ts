import { assertEquals, assertGreaterOrEqual } from "@std/assert";
import { readFaults, withFault } from "./faults.ts";

Deno.test("every fault of faults.txt can be planted", async () => {
  const faults = await readFaults();
  const problems = await Promise.all(faults.map(async (fault) => {
    try {
      withFault(await Deno.readTextFile(`${import.meta.dirname}/../${fault.path}`), fault);
      return [];
    } catch (error) {
      return [`${error}`];
    }
  }));

  assertEquals(problems.flat(), []);
  assertGreaterOrEqual(faults.length, 80);
});
