import fc from "fast-check";
import type { Place } from "./process.ts";
import { calm, place, rough, type Step, stuckBehind } from "./steps.ts";
import { World } from "./world.ts";

/**
 * How often each model is run: MODEL_RUNS; and what chance goes by: MODEL_SEED. A failure tells its seed and its path: with
 * MODEL_PATH, too, it is that run alone. MODEL_END ends at the first failure, as it is, for what is simpler takes a while.
 */
const RUNS = Number(Deno.env.get("MODEL_RUNS") ?? 50);
const SEED = Number(Deno.env.get("MODEL_SEED") ?? 20270115);
const PATH = Deno.env.get("MODEL_PATH");
const OPTIONS = {
  numRuns: RUNS,
  seed: SEED,
  endOnFailure: Deno.env.has("MODEL_END"),
  ...(PATH ? { path: PATH } : {}),
};

const FAR: Place = { latency: 10, maxChecks: 10, maxStalenessMs: 0 };
const ASKED = { kind: "request", operation: "nowhere", pick: 0, keysAgo: 0, bodyAfter: 0 } as const;

/** Requests are charged to a minute that is over when their late reply comes, and the plan is another then. */
const CHARGED_BEFORE: Step[] = [
  { ...ASKED, process: 1, account: 1, count: 1 },
  { kind: "edge", process: 0 },
  { ...ASKED, process: 0, account: 1, count: 1 },
  { kind: "late reply", process: 1, ms: 101 },
  { ...ASKED, process: 1, account: 1, count: 20 },
  { kind: "advance", ms: 30 },
  { kind: "late reply", process: 1, ms: 1 },
  { ...ASKED, process: 1, account: 1, count: 20 },
  { kind: "advance", ms: 10 },
  { kind: "plan", account: 1, limits: { minute: 8, day: 20 } },
  { kind: "rotate", account: 1, graceSeconds: 60 },
  { ...ASKED, process: 1, account: 1, count: 2 },
];

const FARTHER: Place = { ...FAR, latency: 80 };
const STUCK: [Place, Step[]][] = [0, 10, 20, 30].map((ms) => [FARTHER, stuckBehind(0, "create", ms)]);

async function run(place: Place, steps: readonly Step[]): Promise<void> {
  using world = new World(place);
  await world.run(steps);
}

Deno.test("service keeps its promises, and refuses nobody wrongly, whatever happens but crashes", async () => {
  await fc.assert(fc.asyncProperty(place, calm, run), { ...OPTIONS, examples: [[FAR, CHARGED_BEFORE]] });
});

Deno.test("service keeps its promises when processes crash, are not heard of, or commits land late", async () => {
  await fc.assert(fc.asyncProperty(place, rough, run), { ...OPTIONS, examples: STUCK });
});
