import { assert, assertEquals } from "@std/assert";

const HERE = import.meta.dirname ?? "";

Deno.test("README names only tests that exist", async () => {
  const table = await Deno.readTextFile(`${HERE}/README.md`);
  const named = [...table.matchAll(/\]\(([\w./]+_test\.ts)\) "([^"]+)"/g)];
  assert(named.length > 20);

  const folders = await Array.fromAsync(Deno.readDir(`${HERE}/..`), ({ name }) => name);
  const missing: string[] = [];
  for (const [, path = "", name = ""] of named) {
    // A part is left out.
    if (
      ["messages", "page", "browser"].some((name) =>
        path.startsWith(`../${name}/`) && !folders.includes(name)
      )
    ) {
      continue;
    }
    const source = await Deno.readTextFile(`${HERE}/${path}`);
    if (!source.includes(constantEnd(name))) missing.push(`${path}: ${name}`);
  }

  assertEquals(missing, []);
});

/** The constant end of a test's name that the source builds from parts. */
function constantEnd(name: string): string {
  return name.replace(/^service (?=serves other )/, "");
}
