import { assert } from "@std/assert";
import fc from "fast-check";
import { print } from "../../src/process/process.ts";
import type { Deployment } from "./process.ts";
import { calm, rough, type Step, stuckBehind } from "./steps.ts";
import { World } from "./world.ts";

/**
 * MODEL_RUNS is the number of runs of each test. MODEL_SEED seeds them; it is random unless it is set, and printed. A
 * failure prints its path, too; to repeat that run alone, set MODEL_SEED and MODEL_PATH. With MODEL_END, failures are not
 * simplified first, which can take long.
 */
const RUNS = Number(Deno.env.get("MODEL_RUNS") ?? 30);
const SEED = Number(Deno.env.get("MODEL_SEED") ?? Math.floor(Math.random() * 2 ** 31));
const PATH = Deno.env.get("MODEL_PATH");
const OPTIONS = {
  numRuns: RUNS,
  seed: SEED,
  endOnFailure: Deno.env.has("MODEL_END"),
  ...(PATH ? { path: PATH } : {}),
};

print(`MODEL_SEED=${SEED}`);

const PLAIN = { kind: "request", operation: "nowhere", pick: 0, keysAgo: 0, bodyAfter: 0 } as const;

/** Requests are charged to a minute, but the reply of the commit comes after it has ended and the plan has changed. */
const CHARGED_BEFORE: Step[] = [
  { ...PLAIN, process: 1, account: 1, count: 1 },
  { kind: "edge", process: 0 },
  { ...PLAIN, process: 0, account: 1, count: 1 },
  { kind: "late reply", process: 1, ms: 101 },
  { ...PLAIN, process: 1, account: 1, count: 20 },
  { kind: "advance", ms: 30 },
  { kind: "late reply", process: 1, ms: 1 },
  { ...PLAIN, process: 1, account: 1, count: 20 },
  { kind: "advance", ms: 10 },
  { kind: "plan", account: 1, limits: { minute: 8, day: 20 } },
  { kind: "rotate", account: 1, graceSeconds: 60 },
  { ...PLAIN, process: 1, account: 1, count: 2 },
];

/** The length of a creation's commit before it gets stuck, in ms. */
const STUCK = [0, 10, 20, 30];

/** Tests the service on a file, or on a server that `openServer` opens. */
export function testService(on: string, openServer?: Deployment["openServer"]): void {
  const [far, farther] = [10, 80].map((latency): Deployment => ({ latency, maxStalenessMs: 0, openServer }));
  assert(far && farther);
  const deployment = fc.constantFrom(
    ...[far, far, farther, { ...far, latency: 1 }, { ...far, maxStalenessMs: 1_500 }],
  );
  const run = async (deployment: Deployment, steps: readonly Step[]) => {
    using world = new World(deployment);
    await world.run(steps);
  };

  Deno.test(`service on ${on} keeps its promises and never refuses wrongly while no process crashes`, async () => {
    const examples: [Deployment, Step[]][] = [[far, CHARGED_BEFORE]];
    await fc.assert(fc.asyncProperty(deployment, calm, run), { ...OPTIONS, examples });
  });

  Deno.test(`service on ${on} keeps its promises if processes crash or hang, and if commits fail or apply late`, async () => {
    const examples = STUCK.map((ms): [Deployment, Step[]] => [farther, stuckBehind(0, "create", ms)]);
    await fc.assert(fc.asyncProperty(deployment, rough, run), { ...OPTIONS, examples });
  });
}
