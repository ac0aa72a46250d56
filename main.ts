import { ConfigError, DEFAULT_KV_PATH, readConfig, START_HELP } from "./src/config.ts";
import { describeStart, printFirstSteps } from "./src/first_steps.ts";
import { inTurn } from "./src/http/log.ts";
import { originOf } from "./src/http/server.ts";
import { StoreUnavailable } from "./src/kv/deadline.ts";
import { OpenError, openStore } from "./src/kv/open.ts";
import { Metrics } from "./src/metrics/metrics.ts";
import { BROKEN_PIPE, onStopSignal, print, printOutput } from "./src/process.ts";
import { createServingLog, startServing } from "./src/serving.ts";
import { VERSION } from "./src/version.ts";
import { countWorkers, startWorkers } from "./src/workers.ts";

/** Maximum duration of a graceful stop, in ms. */
export const STOP_TIMEOUT = 4_000;
/** One Ctrl-C may arrive twice within this time (ms): the terminal and `deno task` both send SIGINT. */
const ECHO = 500;
/** The exit code of a process that Ctrl-C ends. */
const INTERRUPTED = 130;
const SERVER_PATIENCE = {
  ms: 30_000,
  onWait: (host: string) => print(`Waiting for the KV ${host} to respond.`),
};

if (import.meta.main) {
  try {
    Deno.exit(Deno.args.length > 0 ? await printInformation(Deno.args) : await serve());
  } catch (error) {
    if (error instanceof Deno.errors.BrokenPipe) Deno.exit(BROKEN_PIPE);
    const isForOperator = error instanceof ConfigError || error instanceof OpenError ||
      error instanceof StoreUnavailable;
    if (!isForOperator) throw error;
    print(error.message);
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

/** Serves until SIGINT or SIGTERM, or until it must stop. Resolves to the exit code. */
async function serve(): Promise<number> {
  const stopped = stopSignal();
  const config = readConfig((name) => Deno.env.get(name));
  const count = countWorkers(config);
  const metrics = new Metrics();
  const outputs = { access: inTurn(Deno.stdout), errors: inTurn(Deno.stderr) };
  const log = createServingLog(config, outputs, metrics);

  const { kvPath, onDeploy } = config;
  // Without this, if no database is attached, each instance silently gets its own KV in memory.
  if (kvPath === undefined) Deno.env.set("DENO_KV_REQUIRES_DISTRIBUTED_DATABASE", "error");
  const makesFolder = kvPath === DEFAULT_KV_PATH;
  // Deno Deploy starts another instance if this one fails.
  const patience = onDeploy ? {} : { patience: SERVER_PATIENCE };
  const opening = openStore(kvPath, { clock: Date.now, metrics, create: true, makesFolder, ...patience });
  const store = await Promise.race([opening, stopped]);
  if (!store) return 0;

  const serving = count === 1
    ? await startServing({ config, store, log })
    : await startWorkers({ count, config, store, log, outputs });
  const origin = originOf(serving.address);
  print(describeStart(config, { origin, schema: store.schema.version, workers: count }));
  // Serving does not depend on this.
  printFirstSteps(store, config, origin).catch(() => {});

  const failure = await Promise.race([stopped, serving.failed]);
  if (failure) {
    log.error(failure);
    setTimeout(() => Deno.exit(1), STOP_TIMEOUT);
  }
  await serving.stop();
  return failure ? 1 : 0;
}

/**
 * Resolves at the first SIGINT or SIGTERM. From then on the process exits with 1 if the stop takes too long, and
 * with 130 at another Ctrl-C.
 */
function stopSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let started: number | undefined;
  onStopSignal((signal) => {
    if (started === undefined) {
      started = performance.now();
      setTimeout(() => Deno.exit(1), STOP_TIMEOUT);
      resolve();
    } else if (signal === "SIGINT" && performance.now() - started > ECHO) Deno.exit(INTERRUPTED);
  });
  return promise;
}
