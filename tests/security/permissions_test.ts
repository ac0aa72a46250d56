import { assertEquals } from "@std/assert";
import { TemporaryStore } from "../support/temporary_store.ts";

const PROGRAM = "tests/security/forbidden_acts.ts";
Deno.test("server may not run programs, load libraries, read foreign variables or touch files", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({}, { runtime: ["--preload", PROGRAM] });
  const first = server.stdout.text.trim();

  server.signal("SIGUSR2");
  const later = await server.wrote("stdout", /^.+\n(.+)\n/);

  assertEquals(capableOf(first), ["set a variable", "write elsewhere", "read elsewhere"]);
  assertEquals(capableOf(later), ["set a variable"]);
});

/** The acts that did not fail although a permission is missing. */
function capableOf(line: string): string[] {
  return line.split(", ").filter((act) => !act.endsWith(": NotCapable")).map((act) =>
    act.split(": ")[0] ?? ""
  );
}
