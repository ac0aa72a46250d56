/** A thread that serves requests. `workers.ts` starts it. */
import { AnonymousLimiter } from "./admission/anonymous.ts";
import { readConfig } from "./config.ts";
import { errorRecord, type Output } from "./http/log.ts";
import { openStore } from "./kv/open.ts";
import { Metrics } from "./metrics/metrics.ts";
import { createServingLog, type LocalServing, type LogOutputs, startServing } from "./serving.ts";
import { answerCall, callThread } from "./threads.ts";
import type { MainCall, WorkerCall, WorkerShare } from "./workers.ts";

/** How long a replacement worker waits for a KV server, in ms. */
const PATIENCE = 30_000;

let serving: Promise<LocalServing> | undefined;

addEventListener("message", (event) => {
  if (event instanceof MessageEvent) answerCall<WorkerCall>(event, answer);
});

async function answer(call: WorkerCall): Promise<unknown> {
  switch (call.kind) {
    case "start": {
      const callMain = (mainCall: MainCall) => callThread(call.main, mainCall);
      reportDeath(callMain);
      await (serving = start(call.share, callMain));
      return;
    }
    case "metrics":
      return (await serving)?.metrics();
    case "stop":
      return (await serving)?.stop();
  }
}

/** Reports an uncaught error instead of printing it, because its message may contain secrets. */
function reportDeath(callMain: (call: MainCall) => Promise<unknown>): void {
  const die = async (event: Event, error: unknown) => {
    event.preventDefault();
    await callMain({ kind: "died", record: errorRecord(error, Date.now(), "worker") });
    close();
  };
  addEventListener("error", (event) => die(event, event.error));
  addEventListener("unhandledrejection", (event) => die(event, event.reason));
}

async function start(
  { port, anonymous, startedAt }: WorkerShare,
  callMain: (call: MainCall) => Promise<unknown>,
): Promise<LocalServing> {
  const config = { ...readConfig((name) => Deno.env.get(name)), port };
  const output = (to: keyof LogOutputs): Output => ({
    write: async (bytes) => Number(await callMain({ kind: "write", to, bytes })),
  });
  const metrics = new Metrics();
  const log = createServingLog(config, { access: output("access"), errors: output("errors") }, metrics);
  const patience = { ms: PATIENCE, onWait() {} };
  const store = await openStore(config.kvPath, { clock: Date.now, metrics, create: false, patience });
  await callMain({ kind: "opened" });
  const started = await startServing({
    config,
    store,
    log,
    pool: {
      anonymous: new AnonymousLimiter(anonymous),
      startedAt,
      metrics: async () => [await callMain({ kind: "metrics" })].flat().map(String),
    },
  });
  started.failed.then((record) => callMain({ kind: "failed", record }));
  return started;
}
