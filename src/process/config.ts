import { isIPv4, isIPv6 } from "node:net";
import { isUrl } from "../engine/mod.ts";
import type { AllowedOrigins } from "../web/headers.ts";
import { ANY_ADDRESS } from "../web/mod.ts";
import { Invalid, oneOf, text } from "../web/schema.ts";
import type { OperatorToken } from "../operator/token.ts";
import type { Environment } from "../service/mod.ts";
import { DEFAULT_KV_PATH } from "../catalogue/catalogue.ts";

/** Looks up an environment variable. An empty one counts as not set. */
export type Variables = (name: string) => string | undefined;

/** A setting that an operator changes with an environment variable. */
export interface Setting<Value> {
  /** Name of the variable. */
  readonly name: string;
  /** The default; empty if there is none. */
  readonly defaultText: (get: Variables) => string;
  /** Description, in Markdown. */
  readonly meaning: string;
  /** @throws {ConfigError} naming the variable and what it may be. */
  readonly read: (get: Variables) => Value;
}

/** Parses the text of a variable. Throws Invalid with a message that names the variable. */
type Reader<Value> = (text: string, name: string) => Value;

const CONTACT = text({
  pattern: /^(?:mailto|https|tel):[\x21-\x7e]+$/,
  rule: "be a mailto:, https: or tel: URI",
});
const HEADER_NAME = text({ pattern: /^[\w-]+$/, rule: "be the name of an HTTP header" });
const TOKEN_LENGTH = 32;
/** Minimum number of different characters in a token, so that nobody uses a placeholder. */
const TOKEN_VARIETY = 6;
/** A token of the characters that a bearer credential may have (RFC 6750 section 2.1). */
const TOKEN = String.raw`[\w.~+/=-]{${TOKEN_LENGTH},}`;
/** An entry of a setting with tokens. */
const ENTRY = new RegExp(`^(?:(?<operator>[\\w-]+):)?(?<token>${TOKEN})$`);
const MAX_ENTRIES = 10;
/** Maximum number of tokens with the same name: the new one and the old one during a change. */
const MAX_TOKENS = 2;
const ENVIRONMENTS: readonly Environment[] = ["production", "staging"];

/** Every setting, by its name in the configuration. */
export const SETTINGS = {
  port: setting("PORT", "8000", "port to listen on", integer(65_535, "an integer from 0 to")),
  host: setting(
    "HOST",
    ANY_ADDRESS,
    "address to listen on, by default all of both IP versions; `127.0.0.1` accepts connections from this machine only",
    text().parse,
  ),
  serveAddress: optional(
    "DENO_SERVE_ADDRESS",
    "where to listen in place of `HOST` and `PORT`: `tcp:IP:PORT`, `unix:PATH` or `vsock:CID:PORT`",
    readServeAddress,
  ),
  kvPath: setting(
    "KV_PATH",
    defaultKvPath,
    "where data is stored: a file in an existing folder, `:memory:`, or the URL of a KV Connect server",
    readKvPath,
  ),
  kvToken: setting("DENO_KV_ACCESS_TOKEN", "", "the access token of a KV Connect server", text().parse),
  environment: setting(
    "ENVIRONMENT",
    (get) => isOnDeploy(get) && get("DENO_TIMELINE") === "production" ? "production" : "staging",
    "`staging` or `production` (the default on Deploy's production timeline); each has its own keys",
    oneOf(ENVIRONMENTS).parse,
  ),
  signUpIsOpen: setting(
    "SIGN_UP",
    (get): string => SETTINGS.environment.read(get) === "staging" ? "open" : "closed",
    "`open` or `closed` (the default in production): whether clients may create accounts",
    (text, name) => oneOf(["open", "closed"]).parse(text, name) === "open",
  ),
  publicUrl: optional(
    "PUBLIC_URL",
    "the URL before `/v1`, such as `https://api.example`; by default, taken from each request's Host",
    readBaseUrl,
  ),
  allowedOrigins: setting(
    "ALLOWED_ORIGINS",
    "*",
    "the origins whose web pages may call the API: `*` for all, `none`, or a list such as `https://app.example,https://www.example`",
    readOrigins,
  ),
  maxStalenessMs: setting(
    "MAX_STALENESS_MS",
    "0",
    "how old cached accounts and items may be, in milliseconds; for a distant KV server",
    integer(60_000, "a whole number of milliseconds, at most"),
  ),
  operatorTokens: setting(
    "OPERATOR_TOKEN",
    "",
    "enables metrics, and operators' operations over HTTP; at least " +
      `${TOKEN_LENGTH} random characters, or a list of \`NAME:TOKEN\` for several operators`,
    readTokens,
  ),
  operatorReadTokens: setting(
    "OPERATOR_READ_TOKEN",
    "",
    "enables metrics, and operators' operations that only read; in the same form as `OPERATOR_TOKEN`",
    readTokens,
  ),
  metricsTokens: setting(
    "METRICS_TOKEN",
    "",
    "enables metrics over HTTP, and nothing else; in the same form as `OPERATOR_TOKEN`",
    readTokens,
  ),
  serviceUrl: optional("SERVICE_URL", "for commands: the URL of the service that runs them", readBaseUrl),
  accessLog: setting(
    "ACCESS_LOG",
    "off",
    "`off`, or `json` for one line per request on standard output",
    (text, name) => oneOf(["off", "json"]).parse(text, name) === "json",
  ),
  clientAddressHeader: optional(
    "CLIENT_ADDRESS_HEADER",
    "behind a proxy: the header with the client's address. In a list, the last entry counts",
    HEADER_NAME.parse,
  ),
  securityContact: optional(
    "SECURITY_CONTACT",
    "the contact in `/.well-known/security.txt`: a `mailto:`, `https:` or `tel:` URI",
    CONTACT.parse,
  ),
};

/** Settings that no longer exist, and what takes their place. The service starts with them. */
export const FORMER_SETTINGS: Readonly<Record<string, string>> = {
  WORKERS: "Run several processes on one KV server.",
};

/** A line for each former setting that is set. */
export function formerSettings(get: Variables): readonly string[] {
  return Object.entries(FORMER_SETTINGS).filter(([name]) => get(name))
    .map(([name, remedy]) => `Warning: the setting ${name} no longer exists and is ignored. ${remedy}`);
}

type Settings = typeof SETTINGS;

/** The value of every setting. `onDeploy` is true on Deno Deploy, where a front end passes requests on. */
export type Config =
  & { readonly [Name in keyof Settings]: ReturnType<Settings[Name]["read"]> }
  & { readonly onDeploy: boolean };

/** What `deno task start --help` prints. */
export const START_HELP: string = `Usage: deno task start [--help | --version]

Starts the service. It runs until Ctrl-C. Environment variables, all optional:

${Object.values(SETTINGS).map(describe).join("\n")}`;

/** The service cannot start with this setting or in this environment. The message is for the operator. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/**
 * Reads the configuration from environment variables.
 *
 * @throws {ConfigError} naming the variable and what it may be.
 */
export function readConfig(get: Variables): Config;
export function readConfig(get: Variables): object {
  const values = Object.entries(SETTINGS).map(([name, { read }]) => [name, read(get)]);
  requireDistinctTokens(get);
  return { ...Object.fromEntries(values), onDeploy: isOnDeploy(get) };
}

function setting<Value>(
  name: string,
  defaultValue: string | Setting<Value>["defaultText"],
  meaning: string,
  reader: Reader<Value>,
): Setting<Value> {
  const defaultText = typeof defaultValue === "string" ? () => defaultValue : defaultValue;
  function read(get: Variables): Value {
    try {
      return reader(get(name) || defaultText(get), name);
    } catch (error) {
      throw error instanceof Invalid ? new ConfigError(`${error.message}.`) : error;
    }
  }
  return { name, defaultText, meaning, read };
}

/** A setting without a default. */
function optional<Value>(name: string, meaning: string, reader: Reader<Value>): Setting<Value | undefined> {
  return setting(name, "", meaning, (text) => text === "" ? undefined : reader(text, name));
}

/** A line of the help. */
function describe({ name, defaultText, meaning }: Setting<unknown>): string {
  const text = defaultText(() => undefined);
  return `  ${name.padEnd(22)} ${meaning.replaceAll("`", "")}${text && `. Default: ${text}`}`;
}

function isOnDeploy(get: Variables): boolean {
  return Boolean(get("DENO_DEPLOYMENT_ID"));
}

/**
 * The default of KV_PATH. On Deno Deploy it is the URL of the default KV, if known, because dead connections can be
 * replaced only with a URL.
 */
function defaultKvPath(get: Variables): string {
  if (!isOnDeploy(get)) return DEFAULT_KV_PATH;
  const path = get("DENO_KV_DEFAULT_PATH");
  // Deno would add the prefix a second time.
  return path && isUrl(path) && !get("DENO_KV_PATH_PREFIX") ? path : "";
}

/** The path; undefined for the default KV of Deno Deploy. */
function readKvPath(text: string, name: string): string | undefined {
  const url = isUrl(text) ? new URL(text) : undefined;
  if (url === undefined && /^\w+:\/\//.test(text)) {
    throw new Invalid(`${name} must be a file, :memory: or an http or https URL`);
  }
  // Deno prints the URL when the server does not respond.
  if (url?.username || url?.password) {
    throw new Invalid(
      `${name} must be a URL without user and password. Put the token in DENO_KV_ACCESS_TOKEN`,
    );
  }
  return text || undefined;
}

/** An address that Deno understands. It ignores any other, and listens on HOST and PORT. */
function readServeAddress(text: string, name: string): string {
  const [, scheme, place = "", port] = /^(?:duplicate,)?(tcp|vsock):(.+):(\d+)$/.exec(text) ?? [];
  const isTcp = scheme === "tcp" && Number(port) <= 65_535 &&
    (isIPv4(place) || (/^\[.+\]$/.test(place) && isIPv6(place.slice(1, -1))));
  const isVsock = scheme === "vsock" && /^(?:-1|\d+)$/.test(place) &&
    Math.max(Number(place), Number(port)) < 2 ** 32;
  if (isTcp || isVsock || /^(?:duplicate,)?(?:unix:.|tunnel:)/.test(text)) return text;
  throw new Invalid(`${name} must be tcp:IP:PORT (IPv6 in brackets), unix:PATH or vsock:CID:PORT`);
}

function readBaseUrl(text: string, name: string): string {
  const { protocol = "", host = "", pathname = "", href = "" } = URL.parse(text) ?? {};
  const path = pathname.replace(/\/$/, "");
  const isPlain = /^https?:$/.test(protocol) && href === `${protocol}//${host}${pathname}`;
  if (isPlain && !/\/v1$/.test(path)) return `${protocol}//${host}${path}`;
  throw new Invalid(`${name} must be an http or https URL without a query, and without /v1 at the end`);
}

function readOrigins(text: string, name: string): AllowedOrigins {
  if (text === "*") return text;
  const origins = text === "none" ? [] : text.split(",");
  const isOrigin = (text: string) =>
    /^https?:\/\/[\w.:[\]-]+$/.test(text) && URL.parse(text)?.origin === text;
  if (origins.every(isOrigin)) return origins;
  throw new Invalid(
    `${name} must be *, none, or origins such as https://app.example, separated by commas`,
  );
}

function readTokens(text: string, name: string): readonly OperatorToken[] {
  const entries = text === "" ? [] : text.split(",").map((entry) => {
    const { operator, token } = ENTRY.exec(entry)?.groups ?? {};
    if (token !== undefined) return { token, ...(operator !== undefined && { operator }) };
    throw new Invalid(
      `${name} must be TOKEN or NAME:TOKEN, or a list of these separated by commas: a TOKEN has at least ` +
        `${TOKEN_LENGTH} letters, digits or any of -._~+/=, and a NAME has letters, digits, - and _`,
    );
  });
  if (entries.length > MAX_ENTRIES) throw new Invalid(`${name} must have at most ${MAX_ENTRIES} entries`);
  if (entries.some(({ token }) => new Set(token).size < TOKEN_VARIETY)) {
    throw new Invalid(`${name} must be made of at least ${TOKEN_VARIETY} different characters`);
  }
  if (new Set(entries.map(({ token }) => token)).size < entries.length) {
    throw new Invalid(`${name} must not have a token twice`);
  }
  const byName = Map.groupBy(entries, ({ operator }) => operator);
  if (byName.entries().some(([operator, own]) => operator !== undefined && own.length > MAX_TOKENS)) {
    throw new Invalid(`${name} must have at most ${MAX_TOKENS} tokens with the same name`);
  }
  return entries;
}

/** @throws {ConfigError} if a token is in two settings, because each allows something else. */
function requireDistinctTokens(get: Variables): void {
  const settings = [SETTINGS.operatorTokens, SETTINGS.operatorReadTokens, SETTINGS.metricsTokens];
  const seen = new Map<string, string>();
  for (const { name, read } of settings) {
    for (const { token } of read(get)) {
      const other = seen.get(token);
      if (other !== undefined) throw new ConfigError(`${name} must differ from ${other}, which allows more.`);
      seen.set(token, name);
    }
  }
}

/** Reads an integer from 0 to `max`. The error message ends with `expected` and `max`. */
function integer(max: number, expected: string): Reader<number> {
  return (text, name) => {
    if (/^\d{1,5}$/.test(text) && Number(text) <= max) return Number(text);
    throw new Invalid(`${name} must be ${expected} ${max}`);
  };
}
