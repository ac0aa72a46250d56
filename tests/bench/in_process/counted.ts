// Preloaded into the service: counts the calls of requests.
import { countedIn } from "../counting.ts"; // First, so that all code is counted.
import { takeTurns } from "./turns.ts";

takeTurns(async (run, count) => {
  const counts = await countedIn(run);
  return Object.fromEntries(Object.entries(counts).map(([what, number]) => [what, number / count]));
});
