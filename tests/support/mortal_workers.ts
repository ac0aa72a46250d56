// Loaded before the service: SIGUSR2 ends one of its workers with an uncaught error.
const workers: Worker[] = [];

globalThis.Worker = class extends Worker {
  constructor(_module: string | URL, options?: WorkerOptions) {
    super(new URL("mortal_worker.ts", import.meta.url), options);
    workers.push(this);
  }
};

Deno.addSignalListener("SIGUSR2", () => workers.shift()?.postMessage("die"));
