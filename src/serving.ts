import { API_KEY_LIKE } from "./accounts/api_key.ts";
import { type Config, ConfigError } from "./config.ts";
import { InFlight } from "./http/in_flight.ts";
import { createLog, type ErrorRecord, errorRecord, type Log, type Output } from "./http/log.ts";
import { clientAddress } from "./http/request.ts";
import { Server } from "./http/server.ts";
import { pause } from "./kv/deadline.ts";
import type { Store } from "./kv/store.ts";
import type { Metrics } from "./metrics/metrics.ts";
import { createService, type Pool } from "./service.ts";
import { Sweeper } from "./sweeper.ts";

/** How long clients have to read their last response after the signal, in ms. */
const LAST_RESPONSES_MS = 3_500;

/** Options of {@linkcode startServing}. */
export interface ServingOptions {
  readonly config: Config;
  readonly store: Store;
  readonly log: Log;
  /** The workers that listen on the same port; by default there is only this one. */
  readonly pool?: Pool;
}

/** A started service. */
export interface Serving {
  /** Where it listens. */
  readonly address: Deno.NetAddr;
  /** Resolves with the reason if the service must stop, for example because a newer release has migrated the rows. */
  readonly failed: Promise<ErrorRecord>;
  /** Completes the requests under way, gives permits and IDs back, and closes the store. */
  readonly stop: () => Promise<void>;
}

/** A service in this thread. */
export interface LocalServing extends Serving {
  /** Its own metrics, which can be added to those of other workers. */
  readonly metrics: () => string;
}

/**
 * Starts the service in this thread, and revokes its access to files.
 *
 * @throws {ConfigError} if it cannot listen.
 */
export async function startServing({ config, store, log, pool }: ServingOptions): Promise<LocalServing> {
  if (!config.onDeploy) await revokeFileAccess();
  const clock = Date.now;
  const inFlight = new InFlight();
  const service = createService({
    ...config,
    store,
    chunkedBodies: config.onDeploy,
    clock,
    log,
    clientAddress: (request, { remoteAddr }) =>
      clientAddress(request, remoteAddr, config.clientAddressHeader),
    inFlight,
    ...(pool && { pool }),
  });
  const sweeper = new Sweeper(service.sweeps, clock, log);
  const { host: hostname, port } = config;
  const onFailure = (error: unknown) => log.error(errorRecord(error, clock(), "accept"));
  const options = { hostname, port, reusePort: pool !== undefined, onFailure };
  const server = listening(config, () =>
    new Server(options, (request, info) => {
      sweeper.sweepIfDue();
      return service.fetch(request, info);
    }));
  return {
    address: server.address,
    failed: store.schema.superseded.then((error) => errorRecord(error, clock(), "schema")),
    metrics: service.metrics,
    async stop() {
      const lastResponses = pause(LAST_RESPONSES_MS);
      await Promise.all([sweeper.stop(), inFlight.stop()]);
      await service.settle();
      // All work is done. Only clients that are slow to read or to send can hold the server open.
      await Promise.race([server.stop(), lastResponses]);
      await store.close();
      await log.flushed();
    },
  };
}

/** Destinations of the log. */
export interface LogOutputs {
  readonly access: Output;
  readonly errors: Output;
}

/** Creates the log according to the settings. It hides keys and tokens. */
export function createServingLog(config: Config, { access, errors }: LogOutputs, metrics: Metrics): Log {
  const { accessLog, kvToken, operatorTokens } = config;
  return createLog({
    access: accessLog ? access : undefined,
    errors,
    // A shorter token could occur in text that is not secret.
    secrets: [API_KEY_LIKE, ...operatorTokens, ...(kvToken.length < 8 ? [] : [kvToken])],
    clock: Date.now,
    metrics,
  });
}

/**
 * Calls `listen`, which listens on the address in the settings.
 *
 * @throws {ConfigError} if that fails.
 */
export function listening<Listener>({ host, port }: Config, listen: () => Listener): Listener {
  try {
    return listen();
  } catch (error) {
    const reason = error instanceof Error ? error.message : typeof error;
    const remedy = error instanceof Deno.errors.AddrInUse ? " Set PORT to another port." : "";
    throw new ConfigError(`Cannot listen on ${host}:${port}: ${reason}.${remedy}`);
  }
}

/** Revokes access to files. Once KV is open, the service opens no more. */
async function revokeFileAccess(): Promise<void> {
  await Deno.permissions.revoke({ name: "read" });
  await Deno.permissions.revoke({ name: "write" });
}
