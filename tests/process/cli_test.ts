import { existsSync } from "node:fs";
import { assertEquals, assertMatch, assertRejects, assertStringIncludes } from "@std/assert";
import { VERSION } from "../../src/app/version.ts";
import { CATALOGUE, DEFAULT_KV_PATH } from "../../src/catalogue/catalogue.ts";
import { openStore } from "../../src/engine/open.ts";
import { helpOf } from "../../src/operator/command_line.ts";
import { clientTasks } from "../../src/process/cli.ts";
import { readConfig } from "../../src/process/config.ts";
import { describeStart, printFirstSteps } from "../../src/process/first_steps.ts";
import { print, readLines } from "../../src/process/process.ts";
import { Harness } from "../support/harness.ts";
import { Operator } from "../support/operator.ts";

const operatorToken = "the-operators-token-in-this-one-test";

Deno.test.each([
  "accounts --help",
  "accounts rotate --grace soon -h",
  "items -h",
  "backup --help",
  "restore -h",
])(
  "main() prints help for '%s' even if a variable is invalid",
  async (command) => {
    await using operator = await Operator.start();
    operator.environment.set("PORT", "no port").set("KV_PATH", ":memory:");

    assertEquals([await operator.run(command), operator.err], [0, []]);
    assertStringIncludes(operator.out.join(), `Usage: deno task ${command.split(" ")[0]} `);
  },
);

Deno.test.each([
  ["backup", "backup needs a FILE"],
  ["restore ONE TWO", "restore has no argument 'TWO'"],
  ["backup ONE --fast", "Unknown option '--fast'"],
])("main() rejects '%s': %s", async (command, message) => {
  await using operator = await Operator.start();

  assertEquals([await operator.run(command), operator.out], [2, []]);
  assertEquals(operator.err, [`${message}. See: deno task ${command.split(" ")[0]} --help`]);
});

const CREATE = "accounts create tests";

Deno.test.each<[command: string, variable: string, message: RegExp]>([
  [
    CREATE,
    "KV_PATH=:memory:",
    /^Commands cannot use KV_PATH=:memory:, because only the server has access to it\.$/,
  ],
  [CREATE, "KV_PATH=FOLDER", /^The KV FOLDER cannot be used: [^\n]+\.$/],
  [CREATE, "KV_PATH=FOLDER/a.kv", /^The KV FOLDER\/a\.kv cannot be used: there is no such file, [^\n]+\.$/],
  [CREATE, "ENVIRONMENT=testing", /^ENVIRONMENT must be one of production, staging\.$/],
  ["backup A", "SERVICE_URL=http://a", /^Backups need the store's file\. Unset SERVICE_URL, [^\n]+\.$/],
])("main() exits with 1, prints why, and creates nothing: %s with %s", async (command, variable, message) => {
  await using operator = await Operator.start();
  const [name = "", value = ""] = variable.replace("FOLDER", operator.folder).split("=");
  operator.environment.set(name, value);

  const code = await operator.run(command);

  assertEquals([code, operator.out], [1, []]);
  assertMatch(operator.err.join("\n").replaceAll(operator.folder, "FOLDER"), message);
  const names = (await Array.fromAsync(Deno.readDir(operator.folder))).map((entry) => entry.name);
  assertEquals(names, ["data"]);
});

/** Replaces a standard stream until the result is disposed. */
function replaced(name: "stdin" | "stderr", value: object): Disposable {
  const original = Deno[name];
  const replace = (value: object) => Object.defineProperty(Deno, name, { configurable: true, value });
  replace(value);
  return { [Symbol.dispose]: () => void replace(original) };
}

/** Runs some work. Resolves to what it writes to standard error. */
async function errorsOf(work: () => unknown): Promise<string> {
  let text = "";
  using _ = replaced("stderr", {
    writeSync: (bytes: Uint8Array) => void (text += new TextDecoder().decode(bytes)),
  });
  await work();
  return text;
}

Deno.test("print() writes a line to standard error and ignores a failure to write", async () => {
  assertEquals(await errorsOf(() => print("One")), "One\n");
  using _ = replaced("stderr", {});
  print("Two");
});

Deno.test.each<[string[], string[]]>([
  [["a\nb\n"], ["a", "b"]],
  [["a\nb"], ["a", "b"]],
  [["a\r\nb\r\n"], ["a", "b"]],
  [["a\r", "\nb", "c"], ["a", "bc"]],
  [["\n", "a\n\n"], ["", "a", ""]],
  [[], []],
])("readLines() splits %j into %j", async (pieces, lines) => {
  using _ = replaced("stdin", { readable: ReadableStream.from(pieces).pipeThrough(new TextEncoderStream()) });

  assertEquals(await Array.fromAsync(readLines()), lines);
});

const [{ nouns, path }] = CATALOGUE.resources;

/** What is printed if there is no account, with variables before the command. */
function first(variables: string): string {
  return `
There is no account yet. Create one in another terminal and list the ${nouns.many}:

  export KEY=$(${variables}deno task accounts create me)
  curl -w '\\n' -H "Authorization: Bearer $KEY" http://localhost:8000${path}

`;
}

const FIRST_LIVE = `
There is no account yet. Create the first one in another terminal. Its API key is shown only once:

  ENVIRONMENT=production KV_PATH='it'\\''s.kv' deno task accounts create me

`;
const WARNING =
  "Warning: none of the first 100 accounts belongs to the environment production, so their API keys " +
  "are not valid here. Is ENVIRONMENT right? [1970-01-01T00:00:00.000Z]\n";
const CLOSED =
  "Nobody can get an API key. Set OPERATOR_TOKEN to use commands, or SIGN_UP=open. [1970-01-01T00:00:00.000Z]\n";
const ENVIRONMENT = "production";
const DENO_DEPLOYMENT_ID = "7f3k";

Deno.test.each<[variables: Record<string, string>, accounts: number, steps: string]>([
  [{ KV_PATH: DEFAULT_KV_PATH }, 0, first("")],
  [{ KV_PATH: "other.kv" }, 0, first("KV_PATH='other.kv' ")],
  [{ KV_PATH: "it's.kv", ENVIRONMENT }, 0, FIRST_LIVE],
  [{ KV_PATH: "a.kv" }, 1, ""],
  [{ KV_PATH: ":memory:", ENVIRONMENT }, 1, ""],
  [{ KV_PATH: "a.kv", ENVIRONMENT }, 1, WARNING],
  [{ DENO_DEPLOYMENT_ID }, 0, ""],
  [{ KV_PATH: "a.kv", ENVIRONMENT, DENO_DEPLOYMENT_ID }, 0, CLOSED],
])(
  "printFirstSteps() says how to get a key, or why there is none: %j, %i accounts",
  async (variables, accounts, steps) => {
    await using service = await Harness.open();
    for (let count = 0; count < accounts; count++) await service.createAccount();
    const config = readConfig((name) => variables[name]);

    assertEquals(
      await errorsOf(() =>
        printFirstSteps(service.store, config, { origin: "http://localhost:8000", now: 0 })
      ),
      steps,
    );
  },
);

const tcp = (hostname: string) => ({ transport: "tcp", hostname, port: 80 }) as const;

Deno.test.each<[Deno.Addr, string]>([
  [tcp("::"), "http://localhost:80/ and on all other addresses of this machine"],
  [tcp("0.0.0.0"), "http://localhost:80/ and on all other IPv4 addresses of this machine"],
  [tcp("::1"), "http://[::1]:80/"],
  [{ transport: "unix", path: "/run/a.sock" }, "the Unix socket /run/a.sock"],
  [{ transport: "vsock", cid: 3, port: 80 }, "port 80 of the vsock 3"],
])("describeStart() describes %j, the version and the main settings", (address, expected) => {
  const config = readConfig((name) => ({ ENVIRONMENT, KV_PATH: ":memory:" })[name]);

  assertEquals(
    describeStart(config, { address, schema: 7 }),
    `Listening on ${expected}\n${CATALOGUE.title} ${VERSION}: environment production, sign-up closed, ` +
      "data version 7 in the KV :memory:.",
  );
});

/** Whether this checkout has a folder of src. */
function exists(folder: string): boolean {
  return existsSync(`${import.meta.dirname}/../../src/${folder}`);
}

Deno.test("texts speak of messages only if the service has them", async () => {
  await using service = await Harness.open({ catalogue: CATALOGUE, operatorToken });

  const texts = clientTasks(CATALOGUE).map(helpOf);
  for (const path of ["/v1/openapi.json", "/operator/v1/openapi.json", "/metrics"]) {
    texts.push(await (await service.fetch(`GET ${path}`, { key: operatorToken })).text());
  }

  const words = /\bmessages\b|\bqueue|\ba message\b/i;
  assertEquals(texts.some((text) => words.test(text)), exists("messages"));
});

Deno.test({
  name: "openStore() says that a KV server or Deno Deploy needs engine/remote if it is missing",
  ignore: exists("engine/remote"),
  async fn() {
    for (const path of ["http://127.0.0.1:1/", undefined]) {
      await assertRejects(
        () => openStore(path, { clock: Date.now, create: true }),
        Error,
        "This copy cannot use a KV server: src/engine/remote is missing.",
      );
    }
  },
});
