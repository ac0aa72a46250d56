import { assertEquals } from "@std/assert";
import { StoreUnavailable } from "../../../src/kv/deadline.ts";
import { runCommandLine } from "../../../src/operator/command_line.ts";
import { STORE_TASKS } from "../../../src/operator/operator_route.ts";

Deno.test("runCommandLine() passes on what KV says of a failure, but not over HTTP", async () => {
  const failure = new StoreUnavailable("The operation failed", { cause: new Error("the disk is full") });
  const said: string[] = [];

  for (const isRemote of [false, true]) {
    const terminal = {
      clock: Date.now,
      input: () => Promise.resolve([]),
      out: () => Promise.resolve(),
      err: (line: string) => void said.push(line),
      isStopping: () => false,
      isRemote,
    };
    assertEquals(
      await runCommandLine(STORE_TASKS, ["accounts", "list"], terminal, () => Promise.reject(failure)),
      1,
    );
  }

  assertEquals(said, [
    "The KV does not answer: the disk is full.",
    "The KV does not answer: The operation failed.",
  ]);
});
