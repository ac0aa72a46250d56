import { createApp } from "./src/app.ts";
import { ConfigError, readConfig } from "./src/config.ts";
import { printFirstSteps } from "./src/first_steps.ts";
import { clientAddress } from "./src/http/client_address.ts";
import { createLog } from "./src/http/log.ts";
import { ReplyStore } from "./src/idempotency/reply_store.ts";
import { startSweeper } from "./src/idempotency/sweeper.ts";
import { OpenError, openStore } from "./src/kv/open.ts";
import type { Store } from "./src/kv/store.ts";
import { print } from "./src/terminal.ts";

const STOP_TIMEOUT = 4_000;

try {
  await main();
} catch (error) {
  if (!(error instanceof ConfigError) && !(error instanceof OpenError)) throw error;
  print(error.message);
  Deno.exit(1);
}

/** Serves until SIGINT or SIGTERM. */
async function main(): Promise<void> {
  const config = readConfig((name) => Deno.env.get(name));
  const { port, host: hostname } = config;
  const log = createLog({ access: config.accessLog });
  const store = await openStore(config.kvPath);
  const app = createApp({
    store,
    environment: config.environment,
    clock: Date.now,
    log,
    clientAddress: (request, { remoteAddr }) =>
      clientAddress(request, remoteAddr, config.clientAddressHeader),
  });
  const server = listen({
    port,
    hostname,
    onListen: ({ port }) => print(`Listening on http://localhost:${port}/`),
  }, app);
  const stopSweeper = startSweeper(new ReplyStore(store), Date.now, log);
  stopOnSignal(server, store, stopSweeper);
  if (config.environment !== "production") await printFirstSteps(store, server.addr.port);
}

function listen(
  options: Deno.ServeTcpOptions,
  app: Deno.ServeHandler<Deno.NetAddr>,
): Deno.HttpServer<Deno.NetAddr> {
  try {
    return Deno.serve(options, app);
  } catch (error) {
    const reason = error instanceof Error ? error.message : typeof error;
    throw new ConfigError(`Cannot listen on ${options.hostname}:${options.port}: ${reason}.`);
  }
}

/** Stops taking connections, answers what is in flight, closes KV; and exits in any case before long. */
function stopOnSignal(server: Deno.HttpServer, store: Store, stopSweeper: () => void): void {
  let stopping = false;
  const stop = async () => {
    if (stopping) return;
    stopping = true;
    setTimeout(() => Deno.exit(0), STOP_TIMEOUT);
    stopSweeper();
    await server.shutdown();
    await store.close();
    Deno.exit(0);
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, stop);
}
