import { createCounts } from "./admission/anonymous.ts";
import { type Config, ConfigError, MAX_WORKERS } from "./config.ts";
import { type ErrorRecord, errorRecord, type Log } from "./http/log.ts";
import { pause, withDeadline } from "./kv/deadline.ts";
import { MEMORY } from "./kv/open.ts";
import type { Store } from "./kv/store.ts";
import { countersIn, sumOf } from "./metrics/prometheus.ts";
import { listening, type LogOutputs, type Serving } from "./serving.ts";
import { answerCall, callThread } from "./threads.ts";

/** A call to a worker. The first one starts it. */
export type WorkerCall =
  | { readonly kind: "start"; readonly share: WorkerShare; readonly main: MessagePort }
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

/** A call to the main thread. `opened` returns when the worker may listen. */
export type MainCall =
  | { readonly kind: "opened" }
  | { readonly kind: "died"; readonly record: ErrorRecord }
  | { readonly kind: "metrics" }
  | { readonly kind: "write"; readonly to: keyof LogOutputs; readonly bytes: Uint8Array }
  | { readonly kind: "failed"; readonly record: ErrorRecord };

/** Options of {@linkcode startWorkers}. */
export interface WorkersOptions {
  readonly count: number;
  readonly config: Config;
  /** Closed when the workers have stopped. */
  readonly store: Store;
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
  if (os === "linux" && !onDeploy && kvPath !== MEMORY) {
    return workers === "auto" ? Math.min(cores, MAX_WORKERS) : workers;
  }
  if (workers === "auto" || workers === 1) return 1;
  throw new ConfigError(
    "WORKERS must be 1 or auto: more workers need Linux, and a KV_PATH other than :memory:.",
  );
}

/**
 * Starts workers: threads that serve requests on the same port, each with its own handle on the store. A worker that
 * dies is replaced.
 *
 * @throws {ConfigError} if a worker cannot start.
 */
export async function startWorkers({ count, config, store, log, outputs }: WorkersOptions): Promise<Serving> {
  // Keeps other processes off the port while the workers open the store.
  const listener = listening(config, () => Deno.listen({ hostname: config.host, port: config.port }));
  const address = listener.addr;
  const share = { port: address.port, anonymous: createCounts(), startedAt: performance.timeOrigin };
  const workers = new Set<WorkerThread>();
  const mayListen = Promise.withResolvers<void>();
  const failed = Promise.withResolvers<ErrorRecord>();
  let opening = count;
  let isStopping = false;
  /** Counters of workers that died, because a counter must not fall. */
  let pastCounters = "";

  async function start(): Promise<void> {
    const worker = new WorkerThread(answer, (record) => {
      log.error(record);
      workers.delete(worker);
      pastCounters = sumOf([pastCounters, countersIn(worker.metrics)]);
      replace();
    });
    workers.add(worker);
    await worker.start(share);
  }

  async function replace(): Promise<void> {
    await pause(PAUSE);
    if (isStopping) return;
    try {
      await start();
    } catch (error) {
      failed.resolve({ ...errorRecord(error, Date.now(), "worker"), reason: messageOf(error) });
    }
  }

  async function answer(call: Exclude<MainCall, { kind: "died" }>): Promise<unknown> {
    switch (call.kind) {
      case "opened":
        if (--opening === 0) {
          listener.close();
          mayListen.resolve();
        }
        return await mayListen.promise;
      case "metrics":
        await Promise.all(Array.from(workers, (worker) => worker.readMetrics()));
        return [pastCounters, ...Array.from(workers, ({ metrics }) => metrics)];
      case "write":
        return await outputs[call.to].write(call.bytes);
      case "failed":
        return failed.resolve(call.record);
    }
  }

  try {
    await Promise.all(Array.from({ length: count }, start));
  } catch (error) {
    throw new ConfigError(messageOf(error));
  }
  return {
    address,
    failed: failed.promise,
    async stop() {
      isStopping = true;
      const stops = await Promise.allSettled(Array.from(workers, (worker) => worker.stop()));
      await store.close();
      await log.flushed();
      for (const stop of stops) if (stop.status === "rejected") throw stop.reason;
    },
  };
}

/** A worker as the main thread sees it. */
class WorkerThread {
  /** Its metrics when they were last read. */
  metrics: string = "";
  readonly #worker: Worker;
  readonly #main: MessagePort;
  readonly #death: PromiseWithResolvers<never> = Promise.withResolvers();

  /** `answer` answers its calls. `onDeath` is called if an uncaught error ends it. */
  constructor(
    answer: (call: Exclude<MainCall, { kind: "died" }>) => Promise<unknown>,
    onDeath: (record: ErrorRecord) => void,
  ) {
    const die = (record: ErrorRecord) => {
      this.#death.reject(new Error("A worker died"));
      onDeath(record);
    };
    this.#worker = new Worker(new URL("worker.ts", import.meta.url), {
      type: "module",
      // Its own permissions, because it revokes its file access, which a replacement still needs.
      deno: { permissions: { net: "inherit", read: "inherit", write: "inherit", env: "inherit" } },
    });
    // The module could not be loaded.
    this.#worker.onerror = (event) => {
      event.preventDefault();
      die(errorRecord(event.error, Date.now(), "worker"));
    };
    const { port1: own, port2: main } = new MessageChannel();
    this.#main = main;
    own.onmessage = (event) =>
      answerCall<MainCall>(
        event,
        async (call) => call.kind === "died" ? die(call.record) : await answer(call),
      );
    this.#death.promise.catch(() => {}); // Often, no call awaits it.
  }

  /** Starts it. Resolves when it listens. */
  start(share: WorkerShare): Promise<unknown> {
    return this.#call({ kind: "start", share, main: this.#main }, [this.#main]);
  }

  /** Reads its metrics, unless it takes too long. */
  async readMetrics(): Promise<void> {
    const [read] = await Promise.allSettled([
      withDeadline(this.#call({ kind: "metrics" }), METRICS_DEADLINE),
    ]);
    if (read.status === "fulfilled") this.metrics = String(read.value);
  }

  /** Stops it, once it has started. */
  stop(): Promise<unknown> {
    return this.#call({ kind: "stop" });
  }

  /** Rejects if it dies. */
  #call(call: WorkerCall, transfer: readonly MessagePort[] = []): Promise<unknown> {
    return Promise.race([callThread(this.#worker, call, transfer), this.#death.promise]);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : typeof error;
}
