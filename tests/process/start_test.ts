import { assertEquals, assertMatch } from "@std/assert";
import { START_HELP } from "../../src/process/config.ts";
import { VERSION } from "../../src/app/version.ts";
import { DenoProcess, runServer, ServerProcess } from "./process.ts";
import { SHIPPED, TITLE } from "./shipped.ts";
import { TemporaryStore } from "./temporary_store.ts";

Deno.test("server prints its help and its version on request, and rejects other arguments", async () => {
  const run = (...args: string[]) => runServer({ KV_PATH: ":memory:" }, ...args);

  assertEquals(await run("--help"), { code: 0, stdout: `${START_HELP}\n`, errorLines: [] });
  assertEquals(await run("--version"), { code: 0, stdout: `${VERSION}\n`, errorLines: [] });
  const errorLines = ["The service takes no arguments. See: deno task start --help"];
  assertEquals(await run("--port", "80"), { code: 2, stdout: "", errorLines });
});

Deno.test("server exits 1 and prints one line if it cannot run with its variables", async () => {
  using other = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = other.addr;

  for (
    const [variables, line] of [
      [{ PORT: "x" }, /^PORT must be an integer from 0 to 65535\.$/],
      [{ HOST: "300.1.2.3" }, /^Cannot listen on 300\.1\.2\.3, port 0: [^.]+\.$/],
      [
        { PORT: `${port}` },
        new RegExp(`^Cannot listen on 127\\.0\\.0\\.1, port ${port}: .+\\. Set PORT to another port\\.$`),
      ],
      [{ KV_PATH: "src" }, /^The KV src cannot be used: it is a folder\.$/],
    ] as const
  ) {
    const { code, stdout, errorLines } = await runServer({ KV_PATH: ":memory:", ...variables });
    assertEquals([code, stdout, errorLines.length], [1, "", 1], errorLines.join("\n"));
    assertMatch(errorLines.join(), line);
  }
});

Deno.test("server prints where it listens, its version, its main settings and the first steps", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve();
  await server.wrote("stderr", /^ {2}curl .+\n/m);

  const { code, errorLines, stdout } = await server.stop();

  assertEquals([code, stdout], [0, ""]);
  assertEquals(errorLines, [
    `Listening on http://localhost:${server.port}/`,
    `${TITLE} ${VERSION}: environment staging, sign-up open, data version 1 in the KV ${store.kvPath}.`,
    `There is no account yet. Create one in another terminal and list the ${SHIPPED.nouns.many}:`,
    `  export KEY=$(KV_PATH='${store.kvPath}' deno task accounts create me)`,
    `  curl -w '\\n' -H "Authorization: Bearer $KEY" http://localhost:${server.port}${SHIPPED.path}`,
  ]);
});

Deno.test("server listens on both IP versions by default, as far as the machine has them", async () => {
  await using server = await ServerProcess.start({ KV_PATH: ":memory:", HOST: "" });

  for (const host of ["127.0.0.1", ...(hasIpv6() ? ["[::1]"] : [])]) {
    const response = await fetch(`http://${host}:${server.port}/nothing`);
    assertEquals([host, (await response.json()).status], [host, 404]);
  }
});

function hasIpv6(): boolean {
  try {
    Deno.listen({ hostname: "::1", port: 0 }).close();
    return true;
  } catch {
    return false;
  }
}

Deno.test("server listens on a Unix socket if DENO_SERVE_ADDRESS says so", async () => {
  await using store = await TemporaryStore.empty();
  const path = `${store.folder}/api.sock`;
  const variables = { KV_PATH: store.kvPath, DENO_SERVE_ADDRESS: `unix:${path}` };
  await using server = new DenoProcess(["-P", "main.ts"], variables);
  await server.wrote("stderr", /create me\n/);
  using client = Deno.createHttpClient({ proxy: { transport: "unix", path } });

  const response = await fetch("http://localhost/ready", { client });
  const second = await runServer({ ...variables, KV_PATH: ":memory:" });
  server.signal("SIGTERM");
  const { code, errorLines } = await server.ended();

  assertEquals((await response.json()).status, "ready");
  assertMatch(second.errorLines.join(), /^Cannot listen on unix:.+ remove that\.$/);
  assertEquals([code, errorLines[0], errorLines.at(-1)], [
    0,
    `Listening on the Unix socket ${path}`,
    `  KV_PATH='${store.kvPath}' deno task accounts create me`,
  ]);
});
