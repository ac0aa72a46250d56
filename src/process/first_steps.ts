import { MEMORY, nameOfKv, type Store } from "../engine/mod.ts";
import { ANY_ADDRESS, originOf } from "../web/mod.ts";
import { environmentsIn, foreignWarning } from "../accounts/account_store.ts";
import type { Environment } from "../service/mod.ts";
import { CATALOGUE, DEFAULT_KV_PATH } from "../catalogue/catalogue.ts";
import { VERSION } from "../app/version.ts";
import type { Config } from "./config.ts";
import { print, printAt } from "./process.ts";
import { warningsOfAddress, warningsOfKv } from "./warnings.ts";

/**
 * Describes the running service in two lines: where it listens; its version, the rows' version and main settings.
 * Further lines warn of settings that are not safe.
 */
export function describeStart(
  config: Config,
  { address, schema }: { readonly address: Deno.Addr; readonly schema: number },
): string {
  const { environment, signUpIsOpen, kvPath } = config;
  const data = `data version ${schema} in the KV ${nameOfKv(kvPath)}`;
  const signUp = `sign-up ${signUpIsOpen ? "open" : "closed"}`;
  return [
    `Listening on ${describeAddress(address)}`,
    `${CATALOGUE.title} ${VERSION}: environment ${environment}, ${signUp}, ${data}.`,
    ...warningsOfAddress(config, address),
    ...warningsOfKv(config),
  ].join("\n");
}

function describeAddress(address: Deno.Addr): string {
  if ("path" in address) return `the Unix socket ${address.path}`;
  if ("cid" in address) return `port ${address.port} of the vsock ${address.cid}`;
  const kind = { [ANY_ADDRESS]: "addresses", "0.0.0.0": "IPv4 addresses" }[address.hostname];
  return `${originOf(address)}/${kind === undefined ? "" : ` and on all other ${kind} of this machine`}`;
}

/**
 * Prints why clients cannot call the API yet: nobody can get a key, or there is no account, or none of this
 * environment. If the store is empty and commands can reach it, prints the command that creates an account and, outside
 * production, a first call to `origin`, if there is one.
 */
export async function printFirstSteps(
  store: Store,
  config: Config,
  { origin, now }: { readonly origin: string | undefined; readonly now: number },
): Promise<void> {
  const { kvPath, environment, onDeploy, signUpIsOpen, operatorTokens } = config;
  if (onDeploy && !signUpIsOpen && operatorTokens.length === 0) {
    printAt(now, "Nobody can get an API key. Set OPERATOR_TOKEN to use commands, or SIGN_UP=open.");
  }
  if (kvPath === MEMORY) return;
  const environments = await environmentsIn(store);
  const warning = foreignWarning(environments, environment);
  if (warning !== undefined) printAt(now, warning);
  if (environments.size === 0 && !onDeploy && kvPath !== undefined) {
    print(firstCommands(kvPath, environment, origin));
  }
}

function firstCommands(kvPath: string, environment: Environment, origin: string | undefined): string {
  const path = kvPath === DEFAULT_KV_PATH ? "" : `KV_PATH=${quoted(kvPath)} `;
  if (environment === "production" || origin === undefined) {
    return `
There is no account yet. Create the first one in another terminal. Its API key is shown only once:

  ${environment === "production" ? "ENVIRONMENT=production " : ""}${path}deno task accounts create me
`;
  }
  const [{ path: target, nouns }] = CATALOGUE.resources;
  return `
There is no account yet. Create one in another terminal and list the ${nouns.many}:

  export KEY=$(${path}deno task accounts create me)
  curl -w '\\n' -H "Authorization: Bearer $KEY" ${origin}${target}
`;
}

/** Quotes a word for a shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
