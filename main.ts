import { SECRET_LIKE } from "./src/access/secret.ts";
import { type App, createApp } from "./src/app.ts";
import { type Config, ConfigError, readConfig, START_HELP } from "./src/config.ts";
import { printFirstSteps } from "./src/first_steps.ts";
import { clientAddress } from "./src/http/client_address.ts";
import { Drain } from "./src/http/drain.ts";
import { createLog } from "./src/http/log.ts";
import { ReplyStore } from "./src/idempotency/reply_store.ts";
import { startSweeper } from "./src/idempotency/sweeper.ts";
import { StoreUnavailable } from "./src/kv/deadline.ts";
import { OpenError, openStore } from "./src/kv/open.ts";
import { print, printOutput } from "./src/terminal.ts";

const STOP_TIMEOUT = 4_000;

try {
  if (Deno.args.length > 0) await answerArguments(Deno.args);
  await main();
} catch (error) {
  if (!isForOperator(error)) throw error;
  print(error.message);
  Deno.exit(1);
}

function isForOperator(error: unknown): error is Error {
  return [ConfigError, OpenError, StoreUnavailable].some((kind) => error instanceof kind);
}

/** The service is told what it needs by variables: explains that and exits. */
async function answerArguments(args: readonly string[]): Promise<never> {
  if (args.includes("--help")) {
    await printOutput(START_HELP);
    Deno.exit(0);
  }
  print("The service takes no arguments. See: deno task start --help");
  Deno.exit(2);
}

/** Serves until SIGINT or SIGTERM. */
async function main(): Promise<void> {
  const stopped = stopSignal();
  const config = readConfig((name) => Deno.env.get(name));
  const log = createLog({ access: config.accessLog, secret: SECRET_LIKE });
  const store = await openStore(config.kvPath);
  const drain = new Drain();
  const app = createApp({
    store,
    drain,
    environment: config.environment,
    clock: Date.now,
    log,
    clientAddress: (request, { remoteAddr }) =>
      clientAddress(request, remoteAddr, config.clientAddressHeader),
  });
  const server = listen(config, app);
  print(`Listening on http://localhost:${server.addr.port}/`);
  await printFirstSteps(store, config, server.addr.port);
  const stopSweeper = startSweeper(new ReplyStore(store), Date.now, log);

  await stopped;
  stopSweeper();
  await drain.stop();
  await server.shutdown();
  await store.close();
  Deno.exit(0);
}

/** Resolves at the first SIGINT or SIGTERM, from when on the process exits before long in any case. */
function stopSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = () => {
    setTimeout(() => Deno.exit(0), STOP_TIMEOUT);
    resolve();
  };
  const signals: Deno.Signal[] = Deno.build.os === "windows" ? ["SIGINT"] : ["SIGINT", "SIGTERM"];
  for (const signal of signals) Deno.addSignalListener(signal, stop);
  return promise;
}

function listen({ port, host }: Config, app: App): Deno.HttpServer<Deno.NetAddr> {
  try {
    return Deno.serve({ port, hostname: host, onListen() {} }, app);
  } catch (error) {
    const reason = error instanceof Error ? error.message : typeof error;
    throw new ConfigError(`Cannot listen on ${host}:${port}: ${reason}.`);
  }
}
