import type { Environment } from "./access/secret.ts";
import { isUrl } from "./kv/open.ts";

/** How the service is run; every part has a default. */
export interface Config {
  readonly port: number;
  readonly host: string;
  /** A file, `:memory:` or the URL of a KV Connect server; undefined for Deno Deploy's own KV. */
  readonly kvPath: string | undefined;
  readonly environment: Environment;
  /** Whether each request is logged. */
  readonly accessLog: boolean;
  /** Header in which a proxy passes on the client's address; undefined where clients connect directly. */
  readonly clientAddressHeader: string | undefined;
}

/** Where data is kept unless KV_PATH says otherwise. */
export const DEFAULT_KV_PATH = "data/animals.kv";

/** What `deno task start --help` prints. */
export const START_HELP: string = `Usage: deno task start

Serves until Ctrl-C. Environment variables, all optional:

  PORT                   port to listen on (8000)
  HOST                   address to listen on (0.0.0.0, all of the machine's)
  KV_PATH                a file, :memory:, or the URL of a KV Connect server (${DEFAULT_KV_PATH})
  ENVIRONMENT            staging or production (staging)
  ACCESS_LOG             off, or json for a line a request on standard output (off)
  CLIENT_ADDRESS_HEADER  behind a proxy: the header with the client's address`;

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
  const onDeploy = variable("DENO_DEPLOYMENT_ID") !== undefined;
  const live = onDeploy && variable("DENO_TIMELINE") === "production";
  return {
    port: readPort(variable("PORT") ?? "8000"),
    host: variable("HOST") ?? "0.0.0.0",
    kvPath: readKvPath(variable("KV_PATH")) ?? (onDeploy ? undefined : DEFAULT_KV_PATH),
    environment: oneOf("ENVIRONMENT", variable("ENVIRONMENT") ?? (live ? "production" : "staging"), [
      "production",
      "staging",
    ]),
    accessLog: oneOf("ACCESS_LOG", variable("ACCESS_LOG") ?? "off", ["off", "json"]) === "json",
    clientAddressHeader: readHeaderName(variable("CLIENT_ADDRESS_HEADER")),
  };
}

function readPort(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : NaN;
  if (!(port <= 65_535)) throw new ConfigError("PORT must be an integer from 0 to 65535.");
  return port;
}

function readKvPath(text: string | undefined): string | undefined {
  if (text !== undefined && /^\w+:\/\//.test(text) && !isUrl(text)) {
    throw new ConfigError("KV_PATH must be a file, :memory: or an http or https URL.");
  }
  return text;
}

function oneOf<Value extends string>(name: string, text: string, values: readonly Value[]): Value {
  const value = values.find((value) => value === text);
  if (value === undefined) throw new ConfigError(`${name} must be one of ${values.join(", ")}.`);
  return value;
}

function readHeaderName(text: string | undefined): string | undefined {
  if (text !== undefined && !/^[\w-]+$/.test(text)) {
    throw new ConfigError("CLIENT_ADDRESS_HEADER must be the name of an HTTP header.");
  }
  return text;
}
