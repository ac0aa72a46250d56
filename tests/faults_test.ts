import { assertEquals, assertGreaterOrEqual } from "@std/assert";
import { existsSync } from "node:fs";
import { type Fault, readFaults, withFault } from "./faults.ts";

const ROOT = `${import.meta.dirname}/..`;

function folderOf({ path }: Fault): string {
  return `${ROOT}/${path.replace(/[^/]*$/, "")}`;
}

Deno.test("every fault of faults.txt can be planted", async () => {
  const faults = await readFaults();
  const problems = await Promise.all(faults.map(async (fault) => {
    try {
      withFault(await Deno.readTextFile(`${ROOT}/${fault.path}`), fault);
      return [];
    } catch (error) {
      // A fork may have left out the file's folder.
      return error instanceof Deno.errors.NotFound && !existsSync(folderOf(fault)) ? [] : [`${error}`];
    }
  }));

  assertEquals(problems.flat(), []);
  assertGreaterOrEqual(faults.length, 80);
});
