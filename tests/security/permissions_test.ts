import { assertEquals } from "@std/assert";
import { TemporaryStore } from "../process/temporary_store.ts";

const PROGRAM = "tests/security/forbidden_acts.ts";

Deno.test("server cannot run programs, load libraries, read other variables or access files", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({}, { runtime: ["--preload", PROGRAM] });
  const first = server.stdout.text.trim();

  server.signal("SIGUSR2");
  const later = await server.wrote("stdout", /^.+\n(.+)\n/);

  assertEquals(permittedActs(first), ["set a variable", "write another file", "read another file"]);
  assertEquals(permittedActs(later), ["set a variable"]);
});

/** The acts that did not fail for lack of a permission. */
function permittedActs(line: string): string[] {
  return line.split(", ").filter((act) => !act.endsWith(": NotCapable")).map((act) =>
    act.split(": ")[0] ?? ""
  );
}
