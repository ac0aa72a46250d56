/** Preloaded into a server's process: samples its main thread between two questions. */

import { Session } from "node:inspector/promises";
import process from "node:process";
import { answerWhenAsked } from "../answering.ts";
import { partOf } from "./parts.ts";

/** What the main thread did in the time between two questions, in microseconds of CPU. */
export interface Sample {
  readonly user: number;
  readonly system: number;
  /** JavaScript and garbage collection, by part. */
  readonly parts: Readonly<Record<string, number>>;
}

const session = new Session();
session.connect();
await session.post("Profiler.enable");
await session.post("Profiler.start");

answerWhenAsked(async (): Promise<Sample> => {
  const { profile: { nodes, samples = [], timeDeltas = [] } } = await session.post("Profiler.stop");
  const partById = new Map(nodes.map(({ id, callFrame }) => [id, partOf(callFrame)]));
  const parts: Record<string, number> = {};
  for (const [index, id] of samples.entries()) {
    const part = partById.get(id);
    if (part !== undefined) parts[part] = (parts[part] ?? 0) + (timeDeltas[index] ?? 0);
  }
  await session.post("Profiler.start");
  return { ...process.threadCpuUsage(), parts };
});
