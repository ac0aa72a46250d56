import { assertEquals } from "@std/assert";
import { StoreUnavailable } from "../../../src/kv/deadline.ts";
import { runCommandLine } from "../../../src/operator/command_line.ts";
import { STORE_TASKS } from "../../../src/operator/operator_route.ts";

Deno.test("runCommandLine() prints KV's own message about a failure, except over HTTP", async () => {
  const failure = new StoreUnavailable("The operation failed", { cause: new Error("the disk is full") });
  const printed: string[] = [];

  for (const isRemote of [false, true]) {
    const io = {
      clock: Date.now,
      input: () => Promise.resolve([]),
      out: () => Promise.resolve(),
      err: (line: string) => void printed.push(line),
      isStopping: () => false,
      isRemote,
    };
    assertEquals(
      await runCommandLine(STORE_TASKS, ["accounts", "list"], io, () => Promise.reject(failure)),
      1,
    );
  }

  assertEquals(printed, [
    "The KV does not respond: the disk is full.",
    "The KV does not respond: The operation failed.",
  ]);
});
