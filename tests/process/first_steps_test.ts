import { assertEquals } from "@std/assert";
import { CATALOGUE, DEFAULT_KV_PATH } from "../../src/catalogue/catalogue.ts";
import { VERSION } from "../../src/app/version.ts";
import { readConfig } from "../../src/process/config.ts";
import { describeStart, printFirstSteps } from "../../src/process/first_steps.ts";
import { Harness } from "../support/harness.ts";
import { CapturedErrors } from "./standard_streams.ts";

/** What `printFirstSteps()` prints with these variables. */
async function stepsWith(variables: Readonly<Record<string, string>>, accounts = 0): Promise<string> {
  await using service = await Harness.open();
  for (let count = 0; count < accounts; count++) await service.createAccount();
  using errors = new CapturedErrors();
  await printFirstSteps(service.store, readConfig((name) => variables[name]), "http://localhost:8000");
  return errors.text;
}

Deno.test.each([
  [DEFAULT_KV_PATH, "", "staging"],
  ["other.kv", "KV_PATH='other.kv' ", "staging"],
  ["it's.kv", "KV_PATH='it'\\''s.kv' ", "production"],
])(
  "printFirstSteps() prints the command for %s with the prefix %j, in %s",
  async (KV_PATH, path, ENVIRONMENT) => {
    const [{ nouns, path: target }] = CATALOGUE.resources;

    const steps = await stepsWith({ KV_PATH, ENVIRONMENT });

    assertEquals(
      steps,
      ENVIRONMENT === "staging"
        ? `
There is no account yet. Create one in another terminal and list the ${nouns.many}:

  export KEY=$(${path}deno task accounts create me)
  curl -w '\\n' -H "Authorization: Bearer $KEY" http://localhost:8000${target}

`
        : `
There is no account yet. Create the first one in another terminal. Its API key is shown only once:

  ENVIRONMENT=production ${path}deno task accounts create me

`,
    );
  },
);

Deno.test("printFirstSteps() warns if there are accounts, but none of its environment, or none can be had", async () => {
  const warning =
    "Warning: none of the first 100 accounts belongs to the environment production, so their API keys " +
    "are not valid here. Is ENVIRONMENT right?\n";
  const closed = "Nobody can get an API key. Set OPERATOR_TOKEN to use commands, or SIGN_UP=open.\n";
  const KV_PATH = "a.kv";
  const production = { KV_PATH, ENVIRONMENT: "production" };

  assertEquals(await stepsWith({ KV_PATH }, 1), "");
  assertEquals(await stepsWith({ ...production, KV_PATH: ":memory:" }, 1), "");
  assertEquals(await stepsWith({ DENO_DEPLOYMENT_ID: "7f3k" }), "");
  assertEquals(await stepsWith(production, 1), warning);
  assertEquals(await stepsWith({ ...production, DENO_DEPLOYMENT_ID: "7f3k" }), closed);
});

Deno.test.each<[Deno.Addr, string]>([
  [
    { transport: "tcp", hostname: "::", port: 80 },
    "http://localhost:80/ and on all other addresses of this machine",
  ],
  [
    { transport: "tcp", hostname: "0.0.0.0", port: 80 },
    "http://localhost:80/ and on all other IPv4 addresses of this machine",
  ],
  [{ transport: "tcp", hostname: "::1", port: 80 }, "http://[::1]:80/"],
  [{ transport: "unix", path: "/run/a.sock" }, "the Unix socket /run/a.sock"],
  [{ transport: "vsock", cid: 3, port: 80 }, "port 80 of the vsock 3"],
])("describeStart() describes %j, the version and the main settings", (address, expected) => {
  const config = readConfig((name) => ({ ENVIRONMENT: "production", KV_PATH: ":memory:" })[name]);

  assertEquals(
    describeStart(config, { address, schema: 7 }),
    `Listening on ${expected}\n${CATALOGUE.title} ${VERSION}: environment production, sign-up closed, ` +
      "data version 7 in the KV :memory:.",
  );
});
