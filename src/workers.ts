import { createCounts } from "./admission/anonymous.ts";
import { type Config, ConfigError } from "./config.ts";
import { type ErrorRecord, errorRecord, type Log } from "./http/log.ts";
import { pause, withDeadline } from "./kv/deadline.ts";
import { MEMORY } from "./kv/open.ts";
import { listening, type LogOutputs, type Serving } from "./serving.ts";
import { answerCall, callThread } from "./threads.ts";

/** A call to a worker. The first one starts the worker, and has a port through which it calls the main thread. */
export type WorkerCall =
  | { readonly kind: "start"; readonly share: WorkerShare }
  | { readonly kind: "metrics" }
  | { readonly kind: "stop" };

/** Data that all workers of a process share. */
export interface WorkerShare {
  readonly port: number;
  /** Counts of requests without a valid key. */
  readonly anonymous: SharedArrayBuffer;
  /** Start of the process, in ms since the epoch. */
  readonly startedAt: number;
}

/** A call to the main thread. */
export type MainCall =
  | { readonly kind: "metrics" }
  | { readonly kind: "write"; readonly to: keyof LogOutputs; readonly bytes: Uint8Array }
  | { readonly kind: "failed"; readonly record: ErrorRecord };

/** Options of {@linkcode startWorkers}. */
export interface WorkersOptions {
  readonly count: number;
  readonly config: Config;
  readonly log: Log;
  readonly outputs: LogOutputs;
}

/** The properties of a machine that limit the number of workers. */
export interface Machine {
  readonly os: typeof Deno.build.os;
  readonly cores: number;
}

const THIS_MACHINE: Machine = { os: Deno.build.os, cores: navigator.hardwareConcurrency };
const METRICS_DEADLINE = 1_000;
/** How long to wait before a worker is replaced, in ms. */
const PAUSE = 1_000;

/**
 * The number of workers according to the settings.
 *
 * @throws {ConfigError} if it is more than the platform or the KV allows.
 */
export function countWorkers(config: Config, { os, cores }: Machine = THIS_MACHINE): number {
  const { workers, kvPath, onDeploy } = config;
  if (os === "linux" && !onDeploy && kvPath !== MEMORY) return workers === "auto" ? cores : workers;
  if (workers === "auto" || workers === 1) return 1;
  throw new ConfigError(
    "WORKERS must be 1 or auto: more workers need Linux, and a KV_PATH other than :memory:.",
  );
}

/**
 * Starts workers: threads that serve requests on the same port, each with its own handle on the store. A worker that
 * dies is replaced.
 *
 * @throws {Error} if a worker cannot start.
 */
export async function startWorkers({ count, config, log, outputs }: WorkersOptions): Promise<Serving> {
  const address = freeAddress(config);
  const share = { port: address.port, anonymous: createCounts(), startedAt: performance.timeOrigin };
  const workers = new Set<Worker>();
  const failed = Promise.withResolvers<ErrorRecord>();
  let isStopping = false;

  async function start(): Promise<void> {
    const worker = new Worker(new URL("worker.ts", import.meta.url), {
      type: "module",
      // The worker has its own permissions, because it revokes its access to files, which the next one needs again.
      deno: { permissions: { net: "inherit", read: "inherit", write: "inherit", env: "inherit" } },
    });
    const death = Promise.withResolvers<never>();
    worker.onerror = (event) => {
      event.preventDefault();
      death.reject(new Error(event.message));
      if (workers.delete(worker)) replace(event);
    };
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = (event) => answerCall<MainCall>(event, answer);
    await Promise.race([callThread(worker, { kind: "start", share }, [port2]), death.promise]);
    workers.add(worker);
  }

  async function replace({ filename, lineno }: ErrorEvent): Promise<void> {
    const at = `${filename}:${lineno}`.replace(/^.*(?=src\/)/, "");
    log.error({ ...errorRecord(undefined, Date.now(), "worker"), error: "WorkerDied", at });
    await pause(PAUSE);
    if (!isStopping) await start().catch((error) => failed.resolve(errorRecord(error, Date.now(), "worker")));
  }

  async function answer(call: MainCall): Promise<unknown> {
    switch (call.kind) {
      case "metrics":
        return await metricsOfAll();
      case "write":
        return await outputs[call.to].write(call.bytes);
      case "failed":
        return failed.resolve(call.record);
    }
  }

  async function metricsOfAll(): Promise<string[]> {
    const calls = [...workers].map((worker) =>
      withDeadline(callThread(worker, { kind: "metrics" }), METRICS_DEADLINE)
    );
    const settled = await Promise.allSettled(calls);
    return settled.flatMap((call) => call.status === "fulfilled" ? [`${call.value}`] : []);
  }

  await Promise.all(Array.from({ length: count }, start));
  return {
    address,
    failed: failed.promise,
    async stop() {
      isStopping = true;
      await Promise.all([...workers].map((worker) => callThread(worker, { kind: "stop" })));
      await log.flushed();
    },
  };
}

/** The address in the settings, with a free port if that is 0. No other process may listen on the port. */
function freeAddress(config: Config): Deno.NetAddr {
  const { host: hostname, port } = config;
  using listener = listening(config, () => Deno.listen({ hostname, port }));
  return listener.addr;
}
