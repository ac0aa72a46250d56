/** A thread that serves requests. `workers.ts` starts it. */
import { AnonymousLimiter } from "./admission/anonymous.ts";
import { readConfig } from "./config.ts";
import type { Output } from "./http/log.ts";
import { openStore } from "./kv/open.ts";
import { Metrics } from "./metrics/metrics.ts";
import { createServingLog, type LocalServing, type LogOutputs, startServing } from "./serving.ts";
import { answerCall, callThread } from "./threads.ts";
import type { MainCall, WorkerCall, WorkerShare } from "./workers.ts";

let serving: LocalServing | undefined;

addEventListener("message", (event) => {
  if (event instanceof MessageEvent) answerCall<WorkerCall>(event, answer);
});

async function answer(call: WorkerCall, [main]: readonly MessagePort[]): Promise<unknown> {
  switch (call.kind) {
    case "start":
      if (main) serving = await start(call.share, (call) => callThread(main, call));
      return;
    case "metrics":
      return serving?.metrics();
    case "stop":
      return await serving?.stop();
  }
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
  const store = await openStore(config.kvPath, { clock: Date.now, metrics, create: false });
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
