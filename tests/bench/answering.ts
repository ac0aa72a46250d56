import type { Target } from "./target.ts";

/** A measurement inside a server's process is a module that is preloaded there and answers when asked. */

const POLL_INTERVAL = 10;

/** In the server's process: answers each time it is asked. */
export function answerWhenAsked(answer: () => Promise<unknown>): void {
  Deno.addSignalListener("SIGUSR2", async () => {
    const folder = Deno.env.get("KV_PATH")?.replace(/[^/]*$/, "") ?? `${Deno.env.get("BENCH_FOLDER")}/`;
    await Deno.writeTextFile(`${folder}answer.partial`, JSON.stringify(await answer()));
    await Deno.rename(`${folder}answer.partial`, `${folder}answer.json`);
  });
}

/** In this process: asks the server, and waits for its answer. */
export async function ask({ server, folder }: Target, signal: AbortSignal): Promise<unknown> {
  const path = `${folder}/answer.json`;
  Deno.kill(server.pid, "SIGUSR2");
  while (true) {
    signal.throwIfAborted();
    try {
      const answer: unknown = JSON.parse(await Deno.readTextFile(path));
      await Deno.remove(path);
      return answer;
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL));
    }
  }
}
