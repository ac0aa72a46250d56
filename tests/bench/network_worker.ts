import { parentPort, workerData } from "node:worker_threads";
import { TcpProxy } from "../process/tcp_proxy.ts";

// Runs in its own thread, so that load on the main thread does not slow the network down.
const { url, network } = workerData;
parentPort?.postMessage(new TcpProxy(url, network).url);
