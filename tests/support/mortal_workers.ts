// Loaded before the service: SIGUSR2 makes one of its workers read a file, which it has no permission to do.
const names: string[] = [];

globalThis.Worker = class extends Worker {
  constructor(_module: string | URL, options?: WorkerOptions) {
    const name = crypto.randomUUID();
    super(new URL("mortal_worker.ts", import.meta.url), { ...options, name });
    names.push(name);
    Deno.stderr.writeSync(new TextEncoder().encode("A worker starts\n"));
  }
};

Deno.addSignalListener("SIGUSR2", () => {
  new BroadcastChannel("mortal workers").postMessage(names.shift());
});
