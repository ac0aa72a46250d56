import { existsSync } from "node:fs";
import { assertEquals, assertStringIncludes } from "@std/assert";
import config from "../../deno.json" with { type: "json" };
import { copyCheckout, rewrite } from "./checkout.ts";
import { DenoProcess } from "./process.ts";

/** The last command of a task, as arguments of Deno. */
function lastOf({ command }: { readonly command: string }): readonly string[] {
  return command.split(" && ").at(-1)?.split(" ").slice(1) ?? [];
}

Deno.test("deno task start, docs and check refuse a catalogue in the same line", async () => {
  const cwd = await Deno.makeTempDir();
  await copyCheckout(cwd);
  const refusals = (...commands: readonly (readonly string[])[]) =>
    Promise.all(commands.map(async (args) => {
      const program = [Deno.execPath()];
      await using process = new DenoProcess(args, { KV_PATH: ":memory:" }, { program, cwd });
      const { code, errorLines } = await process.ended();
      return [code, errorLines.at(-1)];
    }));
  const plans = `${cwd}/src/catalogue/plans.ts`;
  const declared = await Deno.readTextFile(plans);
  const { check, docs } = config.tasks;
  assertStringIncludes(docs.command, "tests/tables.ts");

  await Deno.writeTextFile(plans, declared.replace(/(?<=signUp: ").*(?=")/, "gone"));
  const plan = "The plan gone of sign-up must have limits: add it to limits, or name another.";
  assertEquals(
    await refusals(["task", "start"], ["task", "docs"], lastOf(check)),
    Array(3).fill([1, plan]),
  );
  if (existsSync(`${cwd}/src/page`)) {
    await Deno.writeTextFile(plans, declared);
    await rewrite(
      `${cwd}/src/catalogue/identity.ts`,
      (text) => text.replace(/(?<=hues: \{ paper: )\d+/, "NaN"),
    );
    const hue = "The hue paper of the identity must be a number of degrees, not NaN.";
    assertEquals(await refusals(["task", "start"]), [[1, hue]]);
  }
  await Deno.remove(cwd, { recursive: true });
});
