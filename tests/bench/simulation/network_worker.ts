import { parentPort, workerData } from "node:worker_threads";
import { TcpProxy } from "../../support/tcp_proxy.ts";

// A thread of its own: what the load costs does not make the network slower.
const { url, network } = workerData;
parentPort?.postMessage(new TcpProxy(url, network).url);
