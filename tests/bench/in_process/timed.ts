// Preloaded into the service: measures the time and the memory of requests.
import { cpuUsage } from "node:process";
import { takeTurns } from "./turns.ts";

takeTurns(async (run, count) => {
  const heap = Deno.memoryUsage().heapUsed;
  const before = cpuUsage();
  const began = performance.now();
  await run();
  const time = performance.now() - began;
  const { user, system } = cpuUsage(before);
  // Less than nothing if garbage was collected meanwhile.
  const bytes = Deno.memoryUsage().heapUsed - heap;
  return { time: 1_000 * time / count, cpu: (user + system) / count, bytes: bytes / count };
});
