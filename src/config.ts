import type { Environment } from "./accounts/api_key.ts";
import { isUrl } from "./kv/open.ts";

/** How the service is run; every part has a default. */
export interface Config {
  readonly port: number;
  readonly host: string;
  /** A file, `:memory:` or the URL of a KV Connect server; undefined for a KV of Deno Deploy that has no name. */
  readonly kvPath: string | undefined;
  /** What URLs in responses begin with; undefined for the origin that each request names. */
  readonly publicUrl: string | undefined;
  /** How old what is known of accounts and the catalogue may be, in ms. */
  readonly maxStalenessMs: number;
  /** Whether this is Deno Deploy, which has front ends of its own. */
  readonly onDeploy: boolean;
  readonly environment: Environment;
  /** Whether anybody may make an account. */
  readonly signUpIsOpen: boolean;
  /** Where to report a security problem, as a URI; undefined where there is nobody to ask. */
  readonly securityContact: string | undefined;
  /** What operators may send with their commands, the newest first; empty where none may be sent. */
  readonly operatorTokens: readonly string[];
  /** The service that commands are sent to; undefined where they are carried out on the KV. */
  readonly serviceUrl: string | undefined;
  /** Whether each request is logged. */
  readonly accessLog: boolean;
  /** Header in which a proxy passes on the client's address; undefined where clients connect directly. */
  readonly clientAddressHeader: string | undefined;
}

/** Where data is kept unless KV_PATH says otherwise. */
export const DEFAULT_KV_PATH = "data/animals.kv";

/** Why no command works on a KV in memory. */
export const OUT_OF_REACH = "KV_PATH=:memory: is private to the server; no command reaches it.";

/** What `deno task start --help` prints. */
export const START_HELP: string = `Usage: deno task start [--help | --version]

Serves until Ctrl-C. Environment variables, all optional:

  PORT                   port to listen on (8000)
  HOST                   address to listen on (0.0.0.0, all of the machine's)
  KV_PATH                a file, :memory:, or the URL of a KV Connect server (${DEFAULT_KV_PATH})
  ENVIRONMENT            staging or production (staging)
  PUBLIC_URL             what clients put before /v1, such as https://pets.example (each request's Host)
  SIGN_UP                open or closed: whether POST /v1/accounts makes accounts (open in staging)
  MAX_STALENESS_MS       how old what is known of accounts and animals may be, for a far KV (0)
  SECURITY_CONTACT       for /.well-known/security.txt: a mailto:, https: or tel: URI (no file)
  OPERATOR_TOKEN         for commands over HTTP: a secret of 32 characters or more (none are taken);
                         NEW,OLD while it is being changed
  ACCESS_LOG             off, or json for a line a request on standard output (off)
  CLIENT_ADDRESS_HEADER  behind a proxy: the header with the client's address; of a list, its last entry
  DENO_KV_ACCESS_TOKEN   the token of a KV Connect server`;

const CONTACT = /^(?:mailto|https|tel):[\x21-\x7e]+$/;
/** Of the characters of a bearer credential (RFC 6750 section 2.1). */
const TOKENS = /^[\w.~+/=-]{32,}(?:,[\w.~+/=-]{32,})?$/;
const TOKENS_EXPECTED =
  "at least 32 letters, digits or any of -._~+/=, or two such tokens with a comma between them";
const HEADER_NAME = /^[\w-]+$/;

/** A setting or a circumstance that the service cannot start with; its message is for the operator. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

/**
 * The configuration in the environment variables that `get` reads.
 *
 * @throws {ConfigError} naming the variable and what it may be.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const config = readConfig(() => undefined);
 * assertEquals([config.port, config.kvPath, config.environment], [8000, "data/animals.kv", "staging"]);
 * ```
 */
export function readConfig(get: (name: string) => string | undefined): Config {
  const variable = (name: string) => get(name) || undefined;
  const matching = (name: string, form: RegExp, expected: string) => {
    const text = variable(name);
    if (text !== undefined && !form.test(text)) throw new ConfigError(`${name} must be ${expected}.`);
    return text;
  };
  const onDeploy = variable("DENO_DEPLOYMENT_ID") !== undefined;
  const usual = onDeploy && variable("DENO_TIMELINE") === "production" ? "production" : "staging";
  const environment = oneOf("ENVIRONMENT", variable("ENVIRONMENT") ?? usual, ["production", "staging"]);
  const signUp = variable("SIGN_UP") ?? (environment === "staging" ? "open" : "closed");
  return {
    port: readInteger("PORT", variable("PORT") ?? "8000", 65_535, "an integer from 0 to 65535"),
    host: variable("HOST") ?? "0.0.0.0",
    kvPath: readKvPath(variable("KV_PATH")) ?? (onDeploy ? readServerOfDeploy(variable) : DEFAULT_KV_PATH),
    publicUrl: readBaseUrl("PUBLIC_URL", variable("PUBLIC_URL")),
    maxStalenessMs: readInteger(
      "MAX_STALENESS_MS",
      variable("MAX_STALENESS_MS") ?? "0",
      60_000,
      "a whole number of milliseconds, at most 60000",
    ),
    onDeploy,
    environment,
    signUpIsOpen: oneOf("SIGN_UP", signUp, ["open", "closed"]) === "open",
    securityContact: matching("SECURITY_CONTACT", CONTACT, "a mailto:, https: or tel: URI"),
    operatorTokens: matching("OPERATOR_TOKEN", TOKENS, TOKENS_EXPECTED)?.split(",") ?? [],
    serviceUrl: readBaseUrl("SERVICE_URL", variable("SERVICE_URL")),
    accessLog: oneOf("ACCESS_LOG", variable("ACCESS_LOG") ?? "off", ["off", "json"]) === "json",
    clientAddressHeader: matching("CLIENT_ADDRESS_HEADER", HEADER_NAME, "the name of an HTTP header"),
  };
}

function readInteger(name: string, text: string, max: number, expected: string): number {
  const value = /^\d{1,5}$/.test(text) ? Number(text) : NaN;
  if (!(value <= max)) throw new ConfigError(`${name} must be ${expected}.`);
  return value;
}

function readKvPath(text: string | undefined): string | undefined {
  if (text !== undefined && /^\w+:\/\//.test(text) && !isUrl(text)) {
    throw new ConfigError("KV_PATH must be a file, :memory: or an http or https URL.");
  }
  // Deno prints the URL whenever the server does not answer.
  const { username = "", password = "" } = text !== undefined && isUrl(text) ? new URL(text) : {};
  if (username !== "" || password !== "") {
    throw new ConfigError(
      "KV_PATH must be a URL without user and password; a token goes into DENO_KV_ACCESS_TOKEN.",
    );
  }
  return text;
}

/**
 * The server of the KV that Deno Deploy opens without a path, if it can be told: opened by name, its connections
 * are replaced once they are dead.
 */
function readServerOfDeploy(variable: (name: string) => string | undefined): string | undefined {
  const path = variable("DENO_KV_DEFAULT_PATH");
  // Deno would put the prefix before it once more.
  return path && isUrl(path) && !variable("DENO_KV_PATH_PREFIX") ? path : undefined;
}

function readBaseUrl(name: string, text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const { protocol = "", host = "", pathname = "", href = "" } = URL.parse(text) ?? {};
  const path = pathname.replace(/\/$/, "");
  const plain = /^https?:$/.test(protocol) && href === `${protocol}//${host}${pathname}`;
  if (!plain || /\/v1$/.test(path)) {
    throw new ConfigError(`${name} must be an http or https URL without query, and without /v1 at its end.`);
  }
  return `${protocol}//${host}${path}`;
}

function oneOf<Value extends string>(name: string, text: string, values: readonly Value[]): Value {
  const value = values.find((value) => value === text);
  if (value === undefined) throw new ConfigError(`${name} must be one of ${values.join(", ")}.`);
  return value;
}
