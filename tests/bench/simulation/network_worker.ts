import { parentPort, workerData } from "node:worker_threads";
import { openNetwork } from "./network.ts";

// A thread of its own: what the load costs does not make the network slower.
const { target, options } = workerData;
parentPort?.postMessage(openNetwork(target, options));
