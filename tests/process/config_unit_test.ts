import { assertEquals, assertMatch, assertStringIncludes, assertThrows } from "@std/assert";
import { DEFAULT_KV_PATH } from "../../src/catalogue/catalogue.ts";
import {
  type Config,
  ConfigError,
  FORMER_SETTINGS,
  formerSettings,
  readConfig,
  SETTINGS,
  START_HELP,
} from "../../src/process/config.ts";

type Variables = Readonly<Record<string, string>>;

function configOf(variables: Variables): Config {
  return readConfig((name) => variables[name]);
}

const DEPLOYED = { DENO_DEPLOYMENT_ID: "7f3k" };
const ON_TIMELINE = { ...DEPLOYED, DENO_TIMELINE: "production" };
const ON_DEPLOY = { onDeploy: true, kvPath: undefined } as const;
const LIVE = { environment: "production", signUpIsOpen: false } as const;
const TOKEN = `${"aZ0-._~+/".repeat(4)}=`;
const OTHER_TOKEN = "abcdefgh".repeat(4);
/** Ten entries, two for each of five names. */
const TEN = Array.from({ length: 10 }, (_, index) => `n${index % 5}:${OTHER_TOKEN}${index}`);
const SERVER = "http://kv.example:4512";

const settings: readonly (readonly [variables: Variables, change: Partial<Config>])[] = [
  [{}, {}],
  [{ PORT: "0" }, { port: 0 }],
  [{ PORT: "65535" }, { port: 65535 }],
  [{ HOST: "127.0.0.1" }, { host: "127.0.0.1" }],
  ...("tcp:127.0.0.1:65535 tcp:[::1]:0 unix:/run/a.sock vsock:-1:4294967295 vsock:2:80 " +
    "duplicate,tcp:0.0.0.0:80 duplicate,unix:a duplicate,vsock:2:80 duplicate,tunnel:").split(" ")
    .map((serveAddress) => [{ DENO_SERVE_ADDRESS: serveAddress }, { serveAddress }] as const),
  [{ KV_PATH: ":memory:" }, { kvPath: ":memory:" }],
  [{ KV_PATH: "/srv/store.kv" }, { kvPath: "/srv/store.kv" }],
  [{ KV_PATH: SERVER }, { kvPath: SERVER }],
  [{ DENO_KV_ACCESS_TOKEN: "secret" }, { kvToken: "secret" }],
  [{ ENVIRONMENT: "staging" }, {}],
  [{ ENVIRONMENT: "production" }, LIVE],
  [{ PUBLIC_URL: "https://store.example" }, { publicUrl: "https://store.example" }],
  [{ PUBLIC_URL: "HTTP://Store.example:8000/shop/" }, { publicUrl: "http://store.example:8000/shop" }],
  [{ PUBLIC_URL: "https://[::1]/v1/x" }, { publicUrl: "https://[::1]/v1/x" }],
  [{ ALLOWED_ORIGINS: "*" }, {}],
  [{ ALLOWED_ORIGINS: "none" }, { allowedOrigins: [] }],
  [{ ALLOWED_ORIGINS: "https://a.example" }, { allowedOrigins: ["https://a.example"] }],
  [{ ALLOWED_ORIGINS: "http://[::1]:8080,https://a.example" }, {
    allowedOrigins: ["http://[::1]:8080", "https://a.example"],
  }],
  [{ MAX_STALENESS_MS: "0" }, {}],
  [{ MAX_STALENESS_MS: "60000" }, { maxStalenessMs: 60_000 }],
  [{ SIGN_UP: "closed" }, { signUpIsOpen: false }],
  [{ ENVIRONMENT: "production", SIGN_UP: "open" }, { environment: "production" }],
  [{ SECURITY_CONTACT: "mailto:me@store.example" }, { securityContact: "mailto:me@store.example" }],
  [{ OPERATOR_TOKEN: TOKEN }, { operatorTokens: [{ token: TOKEN }] }],
  [{ OPERATOR_TOKEN: `${OTHER_TOKEN},${TOKEN}` }, {
    operatorTokens: [{ token: OTHER_TOKEN }, { token: TOKEN }],
  }],
  [{ OPERATOR_TOKEN: `Zoe_1-b:${TOKEN},${OTHER_TOKEN},Zoe_1-b:${OTHER_TOKEN}x` }, {
    operatorTokens: [
      { token: TOKEN, operator: "Zoe_1-b" },
      { token: OTHER_TOKEN },
      { token: `${OTHER_TOKEN}x`, operator: "Zoe_1-b" },
    ],
  }],
  [{ OPERATOR_TOKEN: TEN.join() }, {
    operatorTokens: TEN.map((entry) => entry.split(":")).map(([operator = "", token = ""]) => ({
      token,
      operator,
    })),
  }],
  [{ OPERATOR_TOKEN: [0, 1, 2].map((end) => `${TOKEN}${end}`).join() }, {
    operatorTokens: [0, 1, 2].map((end) => ({ token: `${TOKEN}${end}` })),
  }],
  [{ OPERATOR_READ_TOKEN: `a:${TOKEN}` }, { operatorReadTokens: [{ token: TOKEN, operator: "a" }] }],
  [{ METRICS_TOKEN: TOKEN }, { metricsTokens: [{ token: TOKEN }] }],
  [{ METRICS_TOKEN: `${OTHER_TOKEN},${TOKEN}` }, {
    metricsTokens: [{ token: OTHER_TOKEN }, { token: TOKEN }],
  }],
  [{ SERVICE_URL: "https://store.example/shop/" }, { serviceUrl: "https://store.example/shop" }],
  [{ ACCESS_LOG: "off" }, {}],
  [{ ACCESS_LOG: "json" }, { accessLog: true }],
  [{ CLIENT_ADDRESS_HEADER: "X-Forwarded-For" }, { clientAddressHeader: "X-Forwarded-For" }],
  [DEPLOYED, ON_DEPLOY],
  [{ ...DEPLOYED, KV_PATH: SERVER }, { ...ON_DEPLOY, kvPath: SERVER }],
  [{ ...DEPLOYED, DENO_KV_DEFAULT_PATH: SERVER }, { ...ON_DEPLOY, kvPath: SERVER }],
  [{ ...DEPLOYED, DENO_KV_DEFAULT_PATH: SERVER, KV_PATH: ":memory:" }, { ...ON_DEPLOY, kvPath: ":memory:" }],
  [{ ...DEPLOYED, DENO_KV_DEFAULT_PATH: SERVER, DENO_KV_PATH_PREFIX: "http://" }, ON_DEPLOY],
  [{ ...DEPLOYED, DENO_KV_DEFAULT_PATH: "store" }, ON_DEPLOY],
  [{ DENO_KV_DEFAULT_PATH: SERVER }, {}],
  [ON_TIMELINE, { ...ON_DEPLOY, ...LIVE }],
  [{ ...ON_TIMELINE, ENVIRONMENT: "staging" }, ON_DEPLOY],
  [{ ...ON_TIMELINE, DENO_TIMELINE: "preview/7f3k" }, ON_DEPLOY],
  [{ ...ON_TIMELINE, DENO_TIMELINE: "git-branch/production" }, ON_DEPLOY],
  [{ ...DEPLOYED, ENVIRONMENT: "production" }, { ...ON_DEPLOY, ...LIVE }],
  [{ DENO_TIMELINE: "production" }, {}],
  [{ PORT: "", HOST: "", KV_PATH: "", ENVIRONMENT: "", PUBLIC_URL: "", MAX_STALENESS_MS: "" }, {}],
  [{ ACCESS_LOG: "", CLIENT_ADDRESS_HEADER: "", DENO_DEPLOYMENT_ID: "" }, {}],
];

Deno.test.each(settings)("readConfig() of %j differs from the defaults by %j", (variables, change) => {
  assertEquals(configOf(variables), {
    port: 8000,
    host: "::",
    serveAddress: undefined,
    kvPath: DEFAULT_KV_PATH,
    kvToken: "",
    publicUrl: undefined,
    allowedOrigins: "*",
    maxStalenessMs: 0,
    onDeploy: false,
    environment: "staging",
    signUpIsOpen: true,
    securityContact: undefined,
    operatorTokens: [],
    operatorReadTokens: [],
    metricsTokens: [],
    serviceUrl: undefined,
    accessLog: false,
    clientAddressHeader: undefined,
    ...change,
  });
});

const TOKEN_RULE =
  "be TOKEN or NAME:TOKEN, or a list of these separated by commas: a TOKEN has at least 32 letters, digits or any of " +
  "-._~+/=, and a NAME has letters, digits, - and _";
const URL_RULE = "be an http or https URL without a query, and without /v1 at the end";
const words = (text: string) => text.split(" ");

const mistakes: readonly (readonly [name: string, rule: string, values: readonly string[]])[] = [
  ["PORT", "be an integer from 0 to 65535", [
    ...words("65536 99999 100000 -1 +80 80.0 8e3 0x50 http ８０"),
    ...[" 80", "80 ", "80\n"],
  ]],
  ["DENO_SERVE_ADDRESS", "be tcp:IP:PORT (IPv6 in brackets), unix:PATH or vsock:CID:PORT", [
    ...words("foo unix: unix=/tmp/x :18034 TCP:127.0.0.1:80 duplicate,foo duplicate, tunnel"),
    ...words("tcp:127.0.0.1 tcp:localhost:80 tcp:256.0.0.1:80 tcp::80 tcp:::1:80 tcp:0.0.0.0:65536"),
    ...words("tcp:[127.0.0.1]:80 tcp:[::]:+80 vsock:2 vsock:x:80 vsock:-2:80 vsock:2:4294967296"),
  ]],
  [
    "KV_PATH",
    "be a file, :memory: or an http or https URL",
    words("ftp://kv.example htps://kv.example file:///srv/store.kv http://"),
  ],
  [
    "KV_PATH",
    "be a URL without user and password. Put the token in DENO_KV_ACCESS_TOKEN",
    words(
      "http://user:secret@kv.example https://user@kv.example http://:secret@kv.example http:user:secret@kv.example",
    ),
  ],
  ["ENVIRONMENT", "be one of production, staging", ["Production", "test", " staging", "production,staging"]],
  ["SIGN_UP", "be one of open, closed", ["Open", "yes"]],
  [
    "SECURITY_CONTACT",
    "be a mailto:, https: or tel: URI",
    ["a@store.example", "http://store.example", "mailto: a"],
  ],
  ...["OPERATOR_TOKEN", "OPERATOR_READ_TOKEN", "METRICS_TOKEN"].flatMap((name) =>
    [
      [name, TOKEN_RULE, [
        ...[TOKEN.slice(0, 31), `${TOKEN} `, `${TOKEN}é`, `${TOKEN}:`, `${TOKEN},`, `,${TOKEN}`, ","],
        ...[`${TOKEN},${OTHER_TOKEN.slice(1)}`, `${TOKEN}, ${OTHER_TOKEN}`, `${TOKEN},,${OTHER_TOKEN}`],
        ...[`:${TOKEN}`, `Zoë:${TOKEN}`, `a b:${TOKEN}`, `a:b:${TOKEN}`, `a:${TOKEN.slice(0, 31)}`],
      ]],
      [name, "not have a token twice", [`${TOKEN},${TOKEN}`, `a:${TOKEN},${OTHER_TOKEN},b:${TOKEN}`]],
      [name, "have at most 10 entries", [`${TEN},${TOKEN}`]],
      [name, "have at most 2 tokens with the same name", [`${TEN.slice(0, 9)},n1:${TOKEN}`]],
      [name, "be made of at least 6 different characters", [
        ...words("x abcde 01").map((characters) => characters.repeat(32)),
        `${TOKEN},${"abcde".repeat(7)}`,
      ]],
    ] as const
  ),
  ["SERVICE_URL", URL_RULE, ["store.example"]],
  ["ACCESS_LOG", "be one of off, json", ["JSON", "on", "true", "1"]],
  ["PUBLIC_URL", URL_RULE, [
    ...words("store.example ftp://store.example https:// https://a:b@store.example https://store.example?a"),
    ...words("https://store.example/? https://store.example/# https://store.example/v1 javascript:alert(1)"),
    "https://store.example/shop/v1/",
  ]],
  ["ALLOWED_ORIGINS", "be *, none, or origins such as https://app.example, separated by commas", [
    ...words("a.example https://a.example/ https://A.example https://a.example:443 https://*.example null"),
    ...words(
      "ftp://a.example https://a.example,* https://a.example,none none, https:// https://a:b@a.example",
    ),
    "https://a.example, https://b.example",
  ]],
  [
    "MAX_STALENESS_MS",
    "be a whole number of milliseconds, at most 60000",
    [...words("60001 100000 -1 1.5 1e3 1s"), " 1"],
  ],
  [
    "CLIENT_ADDRESS_HEADER",
    "be the name of an HTTP header",
    [...words("X-Forwarded-For: é"), "X Forwarded For", "X-Forwarded-For\n", " "],
  ],
];

for (const [name, rule, values] of mistakes) {
  Deno.test.each(values.map((value) => [JSON.stringify(value), value]))(
    `readConfig() rejects ${name}=%s and says what it must be`,
    (_, value = "") => {
      const { message } = assertThrows(() => configOf({ [name]: value }), ConfigError);
      assertEquals(message, `${name} must ${rule}.`);
    },
  );
}

Deno.test.each([
  ["METRICS_TOKEN", "OPERATOR_TOKEN"],
  ["METRICS_TOKEN", "OPERATOR_READ_TOKEN"],
  ["OPERATOR_READ_TOKEN", "OPERATOR_TOKEN"],
])("readConfig() rejects a %s that is also an %s", (name = "", other = "") => {
  const both = { [name]: TOKEN, [other]: `a:${OTHER_TOKEN},b:${TOKEN}` };

  assertThrows(() => configOf(both), ConfigError, `${name} must differ from ${other}, which allows more.`);
});

Deno.test("deno.json permits exactly the variables that readConfig() reads", async () => {
  const { permissions } = JSON.parse(await Deno.readTextFile(`${import.meta.dirname}/../../deno.json`));
  // The service sets this one for Deno.
  const read = new Set(["DENO_KV_REQUIRES_DISTRIBUTED_DATABASE", ...Object.keys(FORMER_SETTINGS)]);

  const given: Variables[] = [{}, { ...ON_TIMELINE, DENO_KV_DEFAULT_PATH: SERVER }];
  for (const variables of given) readConfig((name) => (read.add(name), variables[name]));

  assertEquals(new Set(permissions.default.env), read);
});

Deno.test("formerSettings() names each setting that no longer exists, if it is set", () => {
  const values: Record<string, string> = { PORT: "80", WORKERS: "2" };

  assertEquals(formerSettings((name) => values[name]), [
    "Warning: the setting WORKERS no longer exists and is ignored. Run several processes on one KV server.",
  ]);
  assertEquals(formerSettings(() => ""), []);
});

Deno.test("START_HELP explains each setting and its default", () => {
  const explained = START_HELP.split("\n").slice(4);

  assertEquals(
    explained.map((line) => line.trim().split(" ")[0]),
    Object.values(SETTINGS).map(({ name }) => name),
  );
  assertStringIncludes(START_HELP, "\n  PORT                   port to listen on. Default: 8000\n");
  assertMatch(START_HELP, /^ +SIGN_UP +open or closed .+ Default: open$/m);
  assertMatch(START_HELP, /^ +SECURITY_CONTACT +.+ URI$/m);
});
