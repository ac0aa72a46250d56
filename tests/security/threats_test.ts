import { assert, assertEquals } from "@std/assert";

const HERE = import.meta.dirname ?? "";

Deno.test("README names tests that there are", async () => {
  const table = await Deno.readTextFile(`${HERE}/README.md`);
  const named = [...table.matchAll(/\]\(([\w./]+_test\.ts)\) "([^"]+)"/g)];
  assert(named.length > 20);

  const missing: string[] = [];
  for (const [, path = "", name = ""] of named) {
    const source = await Deno.readTextFile(`${HERE}/${path}`);
    if (!source.includes(patternOf(name))) missing.push(`${path}: ${name}`);
  }

  assertEquals(missing, []);
});

/** Where a test's name has parts that vary, what comes after the last of them. */
function patternOf(name: string): string {
  return name.replace(/^server charges for .+? and/, "and").replace(/^service (?=serves others)/, "");
}
