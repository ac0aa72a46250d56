import { assertEquals, assertMatch } from "@std/assert";
import { START_HELP } from "../../src/process/config.ts";
import { VERSION } from "../../src/app/version.ts";
import { call } from "../support/client.ts";
import { DenoProcess, runServer, ServerProcess, type Variables } from "./process.ts";
import { SHIPPED, TITLE } from "./shipped.ts";
import { TemporaryStore } from "./temporary_store.ts";

Deno.test("server prints its help and its version on request, and rejects other arguments", async () => {
  const help = await runServer({ KV_PATH: ":memory:" }, "--help");
  const short = await runServer({ KV_PATH: ":memory:" }, "-h");
  const version = await runServer({ KV_PATH: ":memory:" }, "--version");
  const refusal = await runServer({ KV_PATH: ":memory:" }, "--port", "80");

  assertEquals([help, short], Array(2).fill({ code: 0, stdout: `${START_HELP}\n`, errorLines: [] }));
  assertEquals(version, { code: 0, stdout: `${VERSION}\n`, errorLines: [] });
  const errorLines = ["The service takes no arguments. See: deno task start --help"];
  assertEquals(refusal, { code: 2, stdout: "", errorLines });
});

Deno.test("server exits 1 and prints one line if it cannot run with its variables", async () => {
  await using store = await TemporaryStore.empty();
  await Deno.writeTextFile(store.kvPath, "This is a letter to the editor.\n".repeat(1_000));
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
      [{ KV_PATH: store.kvPath }, /^The KV .+ cannot be used: file is not a database\.$/],
      [{ KV_PATH: "src" }, /^The KV src cannot be used: it is a folder\.$/],
      [
        { KV_PATH: `${store.folder}/typo/a.kv` },
        /^The KV .+ cannot be used: there is no folder .+\/typo\/, .+\.$/,
      ],
    ] as const
  ) {
    const { code, stdout, errorLines } = await runServer({ KV_PATH: ":memory:", ...variables });
    assertEquals([code, stdout, errorLines.length], [1, "", 1], errorLines.join("\n"));
    assertMatch(errorLines.join(), line);
  }
  assertEquals((await Array.fromAsync(Deno.readDir(store.folder))).map(({ name }) => name), ["store.kv"]);
});

Deno.test("server prints where it listens, its version and its main settings", async () => {
  await using store = await TemporaryStore.create();
  await store.createAccount();
  const production = { ENVIRONMENT: "production", HOST: "0.0.0.0", KV_PATH: ":memory:" };

  const usual = await linesOfOneRun(store);
  const other = await linesOfOneRun(store, production);
  const open = await linesOfOneRun(store, { ...production, SIGN_UP: "open", HOST: "" });

  assertEquals(usual.lines, [
    `Listening on http://localhost:${usual.port}/`,
    `${TITLE} ${VERSION}: environment staging, sign-up open, data version 1 in the KV ${store.kvPath}.`,
  ]);
  const start = `${TITLE} ${VERSION}: environment production, sign-up`;
  assertEquals(other.lines, [
    `Listening on http://localhost:${other.port}/ and on all other IPv4 addresses of this machine`,
    `${start} closed, data version 1 in the KV :memory:.`,
  ]);
  assertEquals(open.lines, [
    `Listening on http://localhost:${open.port}/ and on all other addresses of this machine`,
    `${start} open, data version 1 in the KV :memory:.`,
  ]);
});

Deno.test("server prints the first steps if there is no account and a command can create one", async () => {
  await using store = await TemporaryStore.create();

  const first = await linesOfOneRun(store, {}, /^ {2}curl .+\n/m);
  const quoted = await linesOfOneRun(store, { KV_PATH: `${store.kvPath}'s` }, /^ {2}curl .+\n/m);
  const inProduction = await linesOfOneRun(store, { ENVIRONMENT: "production" }, /^ {2}ENVIRONMENT.+\n/m);

  assertEquals(first.lines.slice(2), [
    `There is no account yet. Create one in another terminal and list the ${SHIPPED.nouns.many}:`,
    `  export KEY=$(KV_PATH='${store.kvPath}' deno task accounts create me)`,
    `  curl -w '\\n' -H "Authorization: Bearer $KEY" http://localhost:${first.port}${SHIPPED.path}`,
  ]);
  assertEquals(
    quoted.lines[3],
    `  export KEY=$(KV_PATH='${store.kvPath}'\\''s' deno task accounts create me)`,
  );
  assertEquals(inProduction.lines.slice(2), [
    "There is no account yet. Create the first one in another terminal. Its API key is shown only once:",
    `  ENVIRONMENT=production KV_PATH='${store.kvPath}' deno task accounts create me`,
  ]);
});

Deno.test("server warns if there are accounts, but none of its environment", async () => {
  await using store = await TemporaryStore.create();
  await store.createAccount();

  const { lines } = await linesOfOneRun(store, { ENVIRONMENT: "production" }, /^Warning: .+\n/m);

  assertEquals(lines.slice(2), [
    "Warning: none of the first 100 accounts belongs to the environment production, so their API keys are not valid " +
    "here. Is ENVIRONMENT right?",
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

/** Starts a server, waits for the expected output, and stops it. Resolves to its port and its standard error. */
async function linesOfOneRun(
  store: TemporaryStore,
  variables: Variables = {},
  expected = /^.+: environment .+\n/m,
): Promise<{ port: number; lines: readonly string[] }> {
  await using server = await store.serve(variables);
  await server.wrote("stderr", expected);
  await call(server, undefined, "GET /ready");
  const { code, errorLines, stdout } = await server.stop();
  assertEquals([code, stdout], [0, ""]);
  return { port: server.port, lines: errorLines };
}
