import { setTimeout as delay } from "node:timers/promises";
import { DATA, freePort } from "../server.ts";
import { Failure, interrupted } from "../terminal.ts";

/** What the token of the simulated store is. */
export const STORE_TOKEN = "simulated-store";

const PACKAGE = `${import.meta.dirname}/../../connect`;

/** Starts a KV Connect server: the denokv that DENOKV names, or the engine of `@deno/kv`. Returns its port. */
export async function startStore(cleanup: AsyncDisposableStack): Promise<number> {
  await Deno.mkdir(DATA, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: DATA, prefix: "simulation-" });
  cleanup.defer(() => Deno.remove(folder, { recursive: true }));
  const path = `${folder}/store.sqlite`;
  const binary = Deno.env.get("DENOKV");
  return await (binary ? startDenokv(cleanup, binary, path) : startEngine(cleanup, path));
}

async function startDenokv(cleanup: AsyncDisposableStack, binary: string, path: string): Promise<number> {
  const port = freePort();
  const args = ["--sqlite-path", path, "serve", "--access-token", STORE_TOKEN, "--addr", `127.0.0.1:${port}`];
  const options = { args, stdout: "null", stderr: "null", signal: interrupted } as const;
  const child = cleanup.use(new Deno.Command(binary, options).spawn());
  let ended = false;
  child.status.then(() => ended = true);
  while (!await answers(port)) {
    if (ended) throw new Failure(`${binary} ended`);
    await delay(20);
  }
  return port;
}

async function startEngine(cleanup: AsyncDisposableStack, path: string): Promise<number> {
  const args = ["run", "--quiet", "-A", "--config", `${PACKAGE}/deno.json`, `${PACKAGE}/server.ts`, path];
  const options = { args, stdout: "piped", stderr: "null", signal: interrupted } as const;
  const child = cleanup.use(new Deno.Command(Deno.execPath(), options).spawn());
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await reader.read();
  reader.read().catch(() => {});
  const port = Number(/:(\d+)\//.exec(value)?.[1]);
  if (!port) throw new Failure("The engine of @deno/kv did not start");
  return port;
}

async function answers(port: number): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return true;
  } catch {
    return false;
  }
}
