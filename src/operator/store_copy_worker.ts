import { parentPort, workerData } from "node:worker_threads";
import { type CopyJob, type CopyReport, copyStore } from "./store_copy.ts";

const job: CopyJob = workerData;
const report = (report: CopyReport) => parentPort?.postMessage(report);

try {
  await copyStore(job, (notice) => report({ notice }));
  report({});
} catch (error) {
  report({ failure: error instanceof Error ? error.message : typeof error });
}
