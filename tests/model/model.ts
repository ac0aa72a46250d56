import fc from "fast-check";
import { print } from "../../src/process/process.ts";
import type { Deployment } from "./process.ts";
import { calm, rough, type Step, stuckBehind } from "./steps.ts";
import { World } from "./world.ts";

/**
 * MODEL_RUNS is the number of runs of each test; by default 30 on a file, and 10 on a server. MODEL_SEED seeds them; it is
 * random unless it is set, and printed. A failure prints its path, too; to repeat that run alone, set MODEL_SEED and
 * MODEL_PATH. With MODEL_END, failures are not simplified first, which can take long.
 */
const SEED = Number(Deno.env.get("MODEL_SEED") ?? Math.floor(Math.random() * 2 ** 31));
const PATH = Deno.env.get("MODEL_PATH");
const OPTIONS = {
  seed: SEED,
  endOnFailure: Deno.env.has("MODEL_END"),
  ...(PATH ? { path: PATH } : {}),
};

print(`MODEL_SEED=${SEED}`);

/** The length of a creation's commit before it gets stuck, in ms. */
const STUCK = [0, 10, 20, 30];

/** Tests the service on a file, or on a server that `openServer` opens. */
export function testService(on: string, openServer?: Deployment["openServer"]): void {
  const options = { ...OPTIONS, numRuns: Number(Deno.env.get("MODEL_RUNS") ?? (openServer ? 10 : 30)) };
  const far: Deployment = { latency: 10, maxStalenessMs: 0, openServer };
  const farther = { ...far, latency: 80 };
  const deployment = fc.constantFrom(
    ...[far, far, farther, { ...far, latency: 1 }, { ...far, maxStalenessMs: 1_500 }],
  );
  const run = async (deployment: Deployment, steps: readonly Step[]) => {
    await using world = new World(deployment);
    await world.run(steps);
  };

  Deno.test(`service on ${on} keeps its promises and never refuses wrongly while no process crashes`, async () => {
    await fc.assert(fc.asyncProperty(deployment, calm, run), options);
  });

  Deno.test(`service on ${on} keeps its promises if processes crash or hang, and if commits fail or apply late`, async () => {
    const examples = STUCK.map((ms): [Deployment, Step[]] => [farther, stuckBehind(0, "create", ms)]);
    await fc.assert(fc.asyncProperty(deployment, rough, run), { ...options, examples });
  });
}
