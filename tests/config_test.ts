import { assert, assertEquals, assertThrows } from "@std/assert";
import { type Config, ConfigError, readConfig } from "../src/config.ts";

type Variables = Readonly<Record<string, string>>;

function configOf(variables: Variables): Config {
  return readConfig((name) => variables[name]);
}

const DEFAULTS: Config = {
  port: 8000,
  host: "0.0.0.0",
  kvPath: "data/animals.kv",
  environment: "staging",
  accessLog: false,
  clientAddressHeader: undefined,
};

const DEPLOYED = { DENO_DEPLOYMENT_ID: "7f3k" };

const settings: readonly (readonly [variables: Variables, change: Partial<Config>])[] = [
  [{}, {}],
  [{ PORT: "" }, {}],
  [{ PORT: "0" }, { port: 0 }],
  [{ PORT: "65535" }, { port: 65535 }],
  [{ HOST: "" }, {}],
  [{ HOST: "127.0.0.1" }, { host: "127.0.0.1" }],
  [{ KV_PATH: "" }, {}],
  [{ KV_PATH: ":memory:" }, { kvPath: ":memory:" }],
  [{ KV_PATH: "/srv/animals.kv" }, { kvPath: "/srv/animals.kv" }],
  [{ KV_PATH: "http://kv.example:4512" }, { kvPath: "http://kv.example:4512" }],
  [{ ENVIRONMENT: "" }, {}],
  [{ ENVIRONMENT: "staging" }, {}],
  [{ ENVIRONMENT: "production" }, { environment: "production" }],
  [{ ACCESS_LOG: "" }, {}],
  [{ ACCESS_LOG: "off" }, {}],
  [{ ACCESS_LOG: "json" }, { accessLog: true }],
  [{ CLIENT_ADDRESS_HEADER: "" }, {}],
  [{ CLIENT_ADDRESS_HEADER: "X-Forwarded-For" }, { clientAddressHeader: "X-Forwarded-For" }],
  [DEPLOYED, { kvPath: undefined }],
  [{ ...DEPLOYED, KV_PATH: "http://kv.example:4512" }, { kvPath: "http://kv.example:4512" }],
  [{ ...DEPLOYED, DENO_TIMELINE: "production" }, { kvPath: undefined, environment: "production" }],
  [{ ...DEPLOYED, DENO_TIMELINE: "preview/7f3k" }, { kvPath: undefined }],
  [{ ...DEPLOYED, DENO_TIMELINE: "git-branch/production" }, { kvPath: undefined }],
  [{ ...DEPLOYED, DENO_TIMELINE: "production", ENVIRONMENT: "staging" }, { kvPath: undefined }],
  [{ ...DEPLOYED, ENVIRONMENT: "production" }, { kvPath: undefined, environment: "production" }],
  [{ DENO_TIMELINE: "production" }, {}],
  [{ DENO_DEPLOYMENT_ID: "" }, {}],
];

for (const [variables, change] of settings) {
  Deno.test(`readConfig() changes ${JSON.stringify(change)} when given ${JSON.stringify(variables)}`, () => {
    assertEquals(configOf(variables), { ...DEFAULTS, ...change });
  });
}

const PORT_RANGE = "PORT must be an integer from 0 to 65535.";
const ENVIRONMENTS = "ENVIRONMENT must be one of production, staging.";
const ACCESS_LOGS = "ACCESS_LOG must be one of off, json.";
const KV_PATHS = "KV_PATH must be a file, :memory: or an http or https URL.";
const HEADER_NAME = "CLIENT_ADDRESS_HEADER must be the name of an HTTP header.";

const mistakes: readonly (readonly [name: string, values: readonly string[], says: string])[] = [
  ["PORT", [
    "65536",
    "99999",
    "100000",
    "-1",
    "+80",
    "80.0",
    "8e3",
    "0x50",
    " 80",
    "80 ",
    "80\n",
    "http",
    "８０",
  ], PORT_RANGE],
  ["KV_PATH", ["ftp://kv.example", "htps://kv.example", "file:///srv/animals.kv", "http://"], KV_PATHS],
  ["ENVIRONMENT", ["Production", "prod", "test", " staging", "production,staging"], ENVIRONMENTS],
  ["ACCESS_LOG", ["JSON", "on", "true", "1", "text"], ACCESS_LOGS],
  [
    "CLIENT_ADDRESS_HEADER",
    ["X Forwarded For", "X-Forwarded-For:", "X-Forwarded-For\n", "é", " "],
    HEADER_NAME,
  ],
];

for (const [name, values, says] of mistakes) {
  Deno.test(`readConfig() says what ${name} may be when it is anything else`, async (t) => {
    for (const value of values) {
      await t.step(JSON.stringify(value), () => {
        const { message } = assertThrows(() => configOf({ [name]: value }), ConfigError);

        assertEquals(message, says);
      });
    }
  });
}

Deno.test("readConfig() reads only variables that the service is permitted to read", async () => {
  const { permissions } = JSON.parse(await Deno.readTextFile(`${import.meta.dirname}/../deno.json`));
  const permitted = new Set<string>(permissions.default.env);
  const read = new Set<string>();

  for (const variables of [{}, DEPLOYED] as Variables[]) {
    readConfig((name) => (read.add(name), variables[name]));
  }

  assert(read.has("KV_PATH"));
  assertEquals([...read].filter((name) => !permitted.has(name)), []);
});
