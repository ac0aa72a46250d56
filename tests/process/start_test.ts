import { assertEquals, assertGreaterOrEqual, assertMatch } from "@std/assert";
import { VERSION } from "../../src/app/version.ts";
import { START_HELP } from "../../src/process/config.ts";
import { call, outcome } from "../support/client.ts";
import { DenoProcess, runCommand, runServer, ServerProcess } from "./process.ts";
import { addItem, idIn, LIST, listIds, METRIC, PATH, SHIPPED, TITLE } from "./shipped.ts";
import { ServedStore, TemporaryStore } from "./temporary_store.ts";

const TOKEN = "a-token-that-nobody-else-can-know";
const OLD_TOKEN = "the-token-that-was-sent-until-now";
const READ_TOKEN = "the-token-of-somebody-who-only-looks";
const METRICS_TOKEN = "the-token-that-only-prometheus-has";
const DENO_KV_ACCESS_TOKEN = "the-token-of-the-server-of-the-kv";

Deno.test("server prints its help or version, or exits with why it cannot run with its arguments or variables", async () => {
  using other = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = other.addr;
  const run = (variables: Record<string, string>, ...args: string[]) =>
    runServer({ KV_PATH: ":memory:", ...variables }, ...args);

  const [help, version, ...failed] = await Promise.all([
    run({}, "--help"),
    run({}, "--version"),
    run({}, "--port", "80"),
    run({ PORT: "x" }),
    run({ PORT: `${port}` }),
    run({ KV_PATH: "src" }),
  ]);

  const quiet = { code: 0, errorLines: [], records: [] };
  assertEquals(help, { ...quiet, stdout: `${START_HELP}\n` });
  assertEquals(version, { ...quiet, stdout: `${VERSION}\n` });
  const reasons = failed.map((
    { code, stdout, errorLines: [line = "", ...more] },
  ) => [code, stdout, line.replace(/(?<=port \d+: ).+(?=\. Set)/, "WHY"), more]);
  assertEquals(reasons, [
    [2, "", "The service takes no arguments. See: deno task start --help", []],
    [1, "", "PORT must be an integer from 0 to 65535.", []],
    [1, "", `Cannot listen on 127.0.0.1, port ${port}: WHY. Set PORT to another port.`, []],
    [1, "", "The KV src cannot be used: it is a folder.", []],
  ]);
});

Deno.test("server prints where it listens, by default on both IP versions, its version, its main settings and the first steps", async () => {
  await using store = await TemporaryStore.create();
  await using server = await store.serve({ HOST: "" });
  await server.wrote("stderr", /^ {2}curl .+\n/m);
  const hosts = ["127.0.0.1", ...(hasIpv6() ? ["[::1]"] : [])];

  for (const host of hosts) {
    const response = await fetch(`http://${host}:${server.port}/nothing`);
    assertEquals([host, (await response.json()).status], [host, 404]);
  }
  const { code, errorLines, stdout } = await server.stop();

  assertEquals([code, stdout], [0, ""]);
  assertEquals(errorLines, [
    `Listening on http://localhost:${server.port}/ and on all other addresses of this machine`,
    `${TITLE} ${VERSION}: environment staging, sign-up open, data version 1 in the KV ${store.kvPath}.`,
    `There is no account yet. Create one in another terminal and list the ${SHIPPED.nouns.many}:`,
    `  export KEY=$(KV_PATH='${store.kvPath}' deno task accounts create me)`,
    `  curl -w '\\n' -H "Authorization: Bearer $KEY" http://localhost:${server.port}${SHIPPED.path}`,
  ]);
});

function hasIpv6(): boolean {
  try {
    Deno.listen({ hostname: "::1", port: 0 }).close();
    return true;
  } catch {
    return false;
  }
}

Deno.test("server starts with a setting that no longer exists, and prints each line with its time", async () => {
  await using store = await TemporaryStore.create();
  await store.createAccount();
  await using server = await store.serve({ WORKERS: "2", ENVIRONMENT: "production" });
  await server.wrote("stderr", /^Warning: none of .+\n/m);

  const { code, errorLines } = await server.stop();

  assertEquals([code, errorLines[0]], [
    0,
    "Warning: the setting WORKERS no longer exists and is ignored. Run several processes on one KV server.",
  ]);
  const lines = server.stderr.text.trim().split("\n").filter((line) =>
    !/Permissions in the config/.test(line)
  );
  const timed = /(?:^\{"time":"| \[)\d{4}-\d\d-\d\dT[\d:.]{12}Z(?:"|\]$)/;
  assertEquals([lines.length, lines.filter((line) => !timed.test(line))], [5, []]);
});

Deno.test("server logs an unexpected error at its start in one line, and exits 1", async () => {
  const fault = "data:application/javascript,Deno.serve = () => ({ finished: Promise.resolve() })";
  const server = new ServerProcess({ KV_PATH: ":memory:" }, { runtime: ["--preload", fault] });

  const { code, errorLines, records: [error, ...more] } = await server.ended();

  assertEquals([code, errorLines, more], [1, [], []]);
  assertEquals([error?.["route"], error?.["error"]], ["start", "TypeError"]);
  assertMatch(`${error?.["stack"]}`, /^ {4}at .+src\/process\/first_steps\.ts:\d+:\d+/);
});

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

Deno.test("server applies its variables, and runs the commands of its OPERATOR_TOKEN alone", async () => {
  await using served = await ServedStore.start();
  const { server: plain, key, store } = served;
  await using server = await store.serve({
    ENVIRONMENT: "production",
    HOST: "0.0.0.0",
    CLIENT_ADDRESS_HEADER: "X-Forwarded-For",
    ALLOWED_ORIGINS: "https://app.example",
    PUBLIC_URL: "https://store.example/base/",
    MAX_STALENESS_MS: "60000",
    ACCESS_LOG: "json",
    OPERATOR_TOKEN: `ann:${TOKEN},ann:${OLD_TOKEN}`,
    OPERATOR_READ_TOKEN: `bob:${READ_TOKEN}`,
    METRICS_TOKEN,
    DENO_KV_ACCESS_TOKEN,
  });
  const remaining = async (server: ServerProcess, forwarded: string) =>
    (await call(server, undefined, LIST, { headers: { "x-forwarded-for": forwarded } })).remaining;
  const left = [];
  for (const list of ["10.0.0.1, 192.0.2.1", "10.0.0.2, 192.0.2.1", "192.0.2.1, 192.0.2.2"]) {
    left.push([await remaining(server, list), await remaining(plain, list)]);
  }
  const run = (OPERATOR_TOKEN: string, ...args: string[]) =>
    runCommand(args, { SERVICE_URL: server.origin, OPERATOR_TOKEN, KV_PATH: "/nowhere" });

  const created = await run(`ann:${TOKEN}`, "accounts", "create", "me");
  const listed = await run(READ_TOKEN, "accounts", "list");
  const refused = await run(TOKEN.toUpperCase(), "accounts", "list");
  const own = created.stdout.trim();
  const { headers, json } = await addItem(server, own, { origin: "https://app.example" });

  assertEquals(left, [[59, 59], [58, 58], [59, 57]]);
  assertEquals(outcome(await call(server, key, LIST)), "401 invalid_api_key");
  assertEquals([created.code, listed.code, refused.code, refused.stdout], [0, 0, 1, ""]);
  assertEquals(refused.errorLines, ["OPERATOR_TOKEN is not this service's token."]);
  assertEquals(headers.get("access-control-allow-origin"), "https://app.example");
  assertEquals(headers.get("location"), `https://store.example/base${PATH}/${idIn(json)}`);
  const known = await listIds(server, own);
  await addItem(plain, key);
  assertEquals([await listIds(server, own), (await listIds(plain, key)).length], [known, 2]);
  const files = await Promise.all(["", "-wal"].map((end) => Deno.stat(store.kvPath + end)));
  const metrics = await (await server.fetch("GET /metrics", { key: METRICS_TOKEN })).text();
  const bytes = Number(new RegExp(`^${METRIC}_kv_file_bytes (\\d+)$`, "m").exec(metrics)?.[1]);
  assertGreaterOrEqual(bytes, files.reduce((sum, { size }) => sum + size, 0));

  assertMatch(metrics, RegExp(`^${METRIC}_event_loop_delay_seconds \\d`, "m"));

  const secrets = [own, TOKEN, OLD_TOKEN, READ_TOKEN, METRICS_TOKEN, DENO_KV_ACCESS_TOKEN];
  for (const id of ["trace-1", ...secrets]) {
    await call(server, own, `${LIST}/77`, {
      headers: { "x-request-id": id, "x-forwarded-for": "192.0.2.3" },
    });
  }
  const { code, stdout, errorLines, records: events } = await server.stop();
  const records = stdout.trim().split("\n").slice(-1 - secrets.length).map((line) => JSON.parse(line));
  assertEquals(
    records.map(({ id, status, address, route }) => [id, status, address, route]),
    ["trace-1", ...secrets.map(() => "[secret]")].map((
      id,
    ) => [id, 404, "192.0.2.3", `${PATH}/:${SHIPPED.id}`]),
  );
  const logged = events.map(({ operator, event, operation, count }) =>
    [operator ?? event, operation ?? count].join(" ").trim()
  );
  // The listing of `accounts create` may end after its creation.
  assertEquals(
    logged.sort(),
    ["ann createAccounts", "ann listAccounts", "bob listAccounts", "stop", "wrong_token 1"],
  );
  assertEquals([code, `${stdout}${server.stderr.text}`.includes(own)], [0, false]);
  assertMatch(errorLines[2] ?? "", /^Warning: clients that reach port \d+ without the proxy/);
});
