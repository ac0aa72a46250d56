import { assertEquals, assertMatch, assertRejects } from "@std/assert";
import { pause } from "../../src/base/time.ts";
import { Harness } from "./harness.ts";
import { VirtualTime } from "./time.ts";

Deno.test.each([false, true])(
  "stop() throws if the store has failed, unless errors are expected: %s",
  async (expectsErrors) => {
    using kv = await Deno.openKv(":memory:");
    const service = new Harness(kv);
    service.expectsErrors = expectsErrors;
    kv.getMany = () => Promise.reject(new TypeError("no such key"));

    const { status } = await service.fetch("GET /ready");

    assertEquals(status, 503);
    if (expectsErrors) return await service.stop();
    await assertRejects(
      () => service.stop(),
      Error,
      '"route":"/ready","error":"StoreUnavailable (TypeError)"',
    );
  },
);

Deno.test("VirtualTime throws if a timer is set at its end, also by work that was under way, and ends it", async () => {
  const original = setTimeout;
  for (const work of [() => pause(5_000), () => Promise.resolve().then(() => pause(5_000))]) {
    const time = new VirtualTime();
    work();

    await assertRejects(() => time[Symbol.asyncDispose](), Error, "Timers are set, and end in 5000 ms");

    assertEquals(setTimeout, original);
  }
});
Deno.test("time_limit.ts ends tests that hang or loop after the time, under their names, and the others run", async () => {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(
    `${folder}/endless_test.ts`,
    `const never = () => new Promise((resolve) => setTimeout(resolve, 9e8));
    Deno.test("waits", never);
    Deno.test({ name: "loops", fn: () => { for (;;); } });
    Deno.test.each([1])("waits %s", never);
    Deno.test("has options", { ignore: true }, never);
    Deno.test("ends", () => {});`,
  );
  const args = [
    "test",
    "--no-config",
    "--no-check",
    "--allow-env",
    `--preload=${import.meta.dirname}/time_limit.ts`,
    folder,
  ];
  const env = { TEST_TIMEOUT_MS: "500", NO_COLOR: "1" };
  const { success, stdout } = await new Deno.Command(Deno.execPath(), { args, env, cwd: folder })
    .output();
  const output = new TextDecoder().decode(stdout);
  await Deno.remove(folder, { recursive: true });

  assertEquals(success, false, output);
  assertEquals(output.split(" FAILURES ")[1]?.match(/^\w.* => .*\d$/gm), [
    "waits => ./endless_test.ts:2:10",
    "loops => ./endless_test.ts:3:10",
    "waits 1 => ./endless_test.ts:4:23",
  ]);
  assertMatch(output, /has options \.\.\. ignored.*\nends \.\.\. ok/);
});

Deno.test.each([["", "false true\n"], ["true", "false false\n"]])(
  "lacks() says whether a program is missing, but not with CI: %s",
  async (CI, expected) => {
    const code = `import { lacks } from "${import.meta.resolve("./programs.ts")}";
    console.log(lacks("git"), lacks("git", "no-such-program"));`;
    const command = new Deno.Command(Deno.execPath(), { args: ["eval", code], env: { CI } });
    const { stdout } = await command.output();

    assertEquals(new TextDecoder().decode(stdout), expected);
  },
);
