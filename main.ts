import { monotonicNow, type MonotonicTime, msSince, pause } from "./src/base/mod.ts";
import { OpenError, openStore, type Store, StoreUnavailable } from "./src/engine/mod.ts";
import { clientAddress } from "./src/web/headers.ts";
import { originOf, Server } from "./src/web/mod.ts";
import { type Generations, openCollections, ResourceError } from "./src/resource/mod.ts";
import { KeyForm } from "./src/accounts/api_key.ts";
import { openAccounts } from "./src/accounts/plans.ts";
import { CATALOGUE, DEFAULT_KV_PATH } from "./src/catalogue/catalogue.ts";
import { EventLoopDelay } from "./src/app/event_loop.ts";
import { InFlight } from "./src/app/in_flight.ts";
import { createLog, errorRecord, type Log, unhandledRecord } from "./src/app/log.ts";
import { Metrics } from "./src/app/metrics.ts";
import { createService } from "./src/app/service.ts";
import { Sweeper } from "./src/app/sweeper.ts";
import { VERSION } from "./src/app/version.ts";
import { type Config, ConfigError, formerSettings, readConfig, START_HELP } from "./src/process/config.ts";
import { describeStart, printFirstSteps } from "./src/process/first_steps.ts";
import { BROKEN_PIPE, onStopSignal, print, printAt, printOutput } from "./src/process/process.ts";

/** Maximum duration of a graceful stop, in ms. */
export const STOP_TIMEOUT = 4_000;
/** How long clients have to read their last response after the signal, in ms. */
const LAST_RESPONSES_MS = 3_500;
/** One Ctrl-C may arrive twice within this time (ms): the terminal and `deno task` both send SIGINT. */
const ECHO = 500;
/** The exit code of a process that Ctrl-C ends. */
const INTERRUPTED = 130;
const SERVER_PATIENCE = {
  ms: 30_000,
  onWait: (host: string) => printAt(Date.now(), `Waiting for the KV ${host} to respond.`),
};

if (import.meta.main) {
  try {
    Deno.exit(Deno.args.length > 0 ? await printInformation(Deno.args) : await serve());
  } catch (error) {
    if (error instanceof Deno.errors.BrokenPipe) Deno.exit(BROKEN_PIPE);
    const isForOperator = error instanceof ConfigError || error instanceof OpenError ||
      error instanceof ResourceError || error instanceof StoreUnavailable;
    if (isForOperator) printAt(Date.now(), error.message);
    else print(JSON.stringify(unhandledRecord(error, Date.now(), "start")));
    Deno.exit(1);
  }
}

/** Prints the help or the version. Resolves to the exit code. */
async function printInformation(args: readonly string[]): Promise<number> {
  if (args.includes("--help") || args.includes("-h")) await printOutput(START_HELP);
  else if (args.includes("--version")) await printOutput(VERSION);
  else {
    print("The service takes no arguments. See: deno task start --help");
    return 2;
  }
  return 0;
}

/** Why the service stops: a signal or, if it has failed, the `route` of the log line that says more; and its exit code. */
interface Stop {
  readonly reason: string;
  readonly code: 0 | 1;
}

/**
 * Serves until SIGINT or SIGTERM, until nobody handles an error, or until a newer release migrates the rows. Resolves to
 * the exit code.
 */
async function serve(): Promise<number> {
  const { promise: stopped, resolve: stop } = Promise.withResolvers<Stop>();
  stopOnSignal(stop);
  const variables = (name: string) => Deno.env.get(name);
  const config = readConfig(variables);
  for (const line of formerSettings(variables)) printAt(Date.now(), line);
  const { onDeploy, environment, publicUrl, maxStalenessMs, signUpIsOpen, securityContact } = config;
  const { operatorTokens, operatorReadTokens, metricsTokens, clientAddressHeader, allowedOrigins } = config;
  const clock = Date.now;
  const metrics = new Metrics();
  const log = logOf(config, metrics);
  const failed = (error: unknown, route: string) => log.error(errorRecord(error, clock(), route));
  stopped.then(({ reason }) => log.event({ time: new Date(clock()).toISOString(), event: "stop", reason }));

  stopOnUnhandledError(stop, (error) => {
    const detail = environment === "production" ? {} : { detail: Deno.inspect(error) };
    log.error({ ...unhandledRecord(error, clock(), "unhandled"), ...detail });
  });

  const opening = open(config, metrics, (error) => failed(error, "store"));
  const opened = await Promise.race([opening, stopped]);
  if ("code" in opened) return await log.flushed().then(() => opened.code);
  const { store, generations } = opened;
  const inFlight = new InFlight();
  const eventLoopDelay = onDeploy ? undefined : new EventLoopDelay();
  const service = createService({
    catalogue: CATALOGUE,
    ...{ generations, store, clock, metrics, log, inFlight, eventLoopDelay },
    ...{ onDeploy, environment, publicUrl, allowedOrigins, maxStalenessMs, signUpIsOpen, securityContact },
    ...{ operatorTokens, operatorReadTokens, metricsTokens },
    clientAddress: (request, { remoteAddr }) => clientAddress(request, remoteAddr, clientAddressHeader),
  });
  const sweeper = new Sweeper(service.sweeps, clock, log);
  const server = listen(config, (error) => failed(error, "accept"), (request, info) => {
    sweeper.sweepIfDue();
    return service.fetch(request, info);
  });
  if (!onDeploy) await revokeFileAccess();
  const now = clock();
  printAt(now, describeStart(config, { address: server.address, schema: store.schema.version }));
  // Serving does not depend on this.
  printFirstSteps(store, config, { origin: originOf(server.address), now }).catch(() => {});

  store.schema.superseded.then((error) => (failed(error, "schema"), stop({ reason: "schema", code: 1 })));
  server.ended.then(() => stop({ reason: "accept", code: 1 }));
  const { code } = await stopped;
  if (code !== 0) setTimeout(() => Deno.exit(code), STOP_TIMEOUT);
  const lastResponses = pause(LAST_RESPONSES_MS);
  await Promise.all([sweeper.stop(), inFlight.stop()]);
  await Promise.all([service.close(), inFlight.quiet()]);
  // All work is done. Only clients that are slow to read or to send can hold the server open.
  await Promise.race([server.stop(), lastResponses]);
  await store.close();
  await log.flushed();
  return code;
}

/** Opens the store for the catalogue. */
async function open(
  { kvPath, onDeploy }: Config,
  { engine }: Metrics,
  onLost: (error: StoreUnavailable) => void,
): Promise<{ readonly store: Store; readonly generations: Generations }> {
  // Without this, if no database is attached, each instance silently gets its own KV in memory.
  if (kvPath === undefined) Deno.env.set("DENO_KV_REQUIRES_DISTRIBUTED_DATABASE", "error");
  const makesFolder = kvPath === DEFAULT_KV_PATH;
  // Deno Deploy starts another instance if this one fails.
  const patience = onDeploy ? {} : { patience: SERVER_PATIENCE };
  const store = await openStore(kvPath, {
    ...{ clock: Date.now, metrics: engine, create: true, makesFolder, onLost, ...patience },
  });
  const generations = await openCollections(store, CATALOGUE, { create: true });
  await openAccounts(store, CATALOGUE);
  return { store, generations };
}

/** Creates the log according to the settings. It hides keys and tokens. */
function logOf(config: Config, metrics: Metrics): Log {
  const { accessLog, kvToken, operatorTokens, operatorReadTokens, metricsTokens } = config;
  return createLog({
    access: accessLog ? Deno.stdout : undefined,
    errors: Deno.stderr,
    // A shorter token could occur in text that is not secret.
    secrets: [
      new KeyForm(CATALOGUE).secret,
      ...[...operatorTokens, ...operatorReadTokens, ...metricsTokens].map(({ token }) => token),
      ...(kvToken.length < 8 ? [] : [kvToken]),
    ],
    clock: Date.now,
    metrics,
  });
}

/**
 * Calls `stop` at the first SIGINT or SIGTERM. From then on the process exits with 1 if the stop takes too long, and
 * with 130 at another Ctrl-C.
 */
function stopOnSignal(stop: (stop: Stop) => void): void {
  let started: MonotonicTime | undefined;
  onStopSignal((signal) => {
    if (started === undefined) {
      started = monotonicNow();
      setTimeout(() => Deno.exit(1), STOP_TIMEOUT);
      stop({ reason: signal, code: 0 });
    } else if (signal === "SIGINT" && msSince(started) > ECHO) Deno.exit(INTERRUPTED);
  });
}

/** Logs every error and rejection that nobody handles, such as that of a part's timer. Calls `stop` at the first. */
function stopOnUnhandledError(stop: (stop: Stop) => void, log: (error: unknown) => void): void {
  function unhandled(event: Event, error: unknown): void {
    event.preventDefault(); // Otherwise, Deno ends the process.
    log(error);
    stop({ reason: "unhandled", code: 1 });
  }
  addEventListener("error", (event) => unhandled(event, event.error));
  addEventListener("unhandledrejection", (event) => unhandled(event, event.reason));
}

/** Revokes access to files. Once KV is open and the server listens, the service opens no more. */
async function revokeFileAccess(): Promise<void> {
  await Deno.permissions.revoke({ name: "read" });
  await Deno.permissions.revoke({ name: "write" });
}

/** @throws {ConfigError} if it cannot listen. */
function listen(
  { host, port, serveAddress }: Config,
  onFailure: (error: unknown) => void,
  handler: Deno.ServeHandler<Deno.Addr>,
): Server {
  try {
    return new Server({ hostname: host, port, onFailure }, handler);
  } catch (error) {
    const reason = error instanceof Error ? error.message : typeof error;
    const other = serveAddress === undefined
      ? "Set PORT to another port."
      : "Change DENO_SERVE_ADDRESS or, if no process uses its socket, remove that.";
    const remedy = error instanceof Deno.errors.AddrInUse ? ` ${other}` : "";
    throw new ConfigError(`Cannot listen on ${serveAddress ?? `${host}, port ${port}`}: ${reason}.${remedy}`);
  }
}
