import { assertEquals } from "@std/assert";
import { print } from "../src/stdio.ts";

Deno.test("print() writes a line to standard error, and does not fail when that cannot be written", () => {
  const { stderr } = Deno;
  const written: string[] = [];
  let isFull = false;
  const writeSync = (bytes: Uint8Array) => {
    if (isFull) throw new Error("No space left on device");
    return written.push(new TextDecoder().decode(bytes));
  };
  Object.defineProperty(Deno, "stderr", { configurable: true, value: { writeSync } });
  try {
    print("One");
    isFull = true;
    print("Two");
  } finally {
    Object.defineProperty(Deno, "stderr", { configurable: true, value: stderr });
  }

  assertEquals(written, ["One\n"]);
});
