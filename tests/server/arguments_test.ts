import { assertEquals, assertMatch } from "@std/assert";
import { runServer } from "./server_process.ts";

Deno.test("server explains its variables on standard output when asked for help", async () => {
  const { code, stdout, errorLines } = await runServer({ KV_PATH: ":memory:" }, ["--help"]);

  assertEquals(code, 0);
  for (const name of ["PORT", "HOST", "KV_PATH", "ENVIRONMENT", "ACCESS_LOG", "CLIENT_ADDRESS_HEADER"]) {
    assertMatch(stdout, new RegExp(`^  ${name} `, "m"));
  }
  assertEquals(errorLines, []);
});

Deno.test("server does not start with arguments that it does not know", async () => {
  const { code, stdout, errorLines } = await runServer({ KV_PATH: ":memory:" }, ["--port", "80"]);

  assertEquals(code, 2);
  assertEquals(stdout, "");
  assertEquals(errorLines, ["The service takes no arguments. See: deno task start --help"]);
});
