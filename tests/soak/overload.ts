import { DenoProcess, residentMemory, type ServerProcess } from "../support/process.ts";
import { TemporaryStore } from "../support/temporary_store.ts";
import { Crowd, flood } from "./crowd.ts";
import type { Order, Report } from "./good_clients.ts";
import { atLeast, atMost, type Effort, exactly, type Finding, type Note, pause } from "./part.ts";

const MIB = 1_048_576;
/** Files that are open beside the connections, in this process and in the service's. */
const OTHER_FILES = 300;
const MEMORY_INTERVAL = 100;
const GOOD_CLIENTS = 8;
const EVERY_MS = 20;
/** A bound in MiB: what the service has by itself, a connection, and a body of 64 KiB that is being read. */
const BOUND = { alone: 256, connection: 16 / 1_024, body: 320 / 1_024 };

/** Crowds the service with connections that do nothing good and with unknown keys, while others use it. */
export async function overload(
  { connections, addresses, siege, patience }: Pick<
    Effort,
    "connections" | "addresses" | "siege" | "patience"
  >,
  note: Note,
): Promise<Finding[]> {
  await using store = await TemporaryStore.create();
  const { key } = await store.createAccount();
  const openFiles = await mostOpenFiles();
  const count = Math.min(connections, openFiles - OTHER_FILES);
  const variables = { CLIENT_ADDRESS_HEADER: "x-real-ip" };
  await using server = await store.serve(variables, { openFiles, lifetime: 600_000 });
  await using watch = new MemoryWatch(server.pid);
  await behave(server, key, siege * 1_000 / 10);
  const quiet = await behave(server, key, siege * 1_000);

  using crowd = new Crowd();
  const behaving = behave(server, key, siege * 1_000);
  await crowd.open(count, server.port, key);
  note(`overload: ${crowd.size} connections`);
  const crowded = await behaving;
  const beside = behave(server, key, siege * 1_000);
  const refused = await flood(server.port, addresses);
  note(`overload: ${refused} unknown keys were refused`);
  const flooded = await beside;
  crowd[Symbol.dispose]();
  const { code, errorLines } = await server.stop();

  const bound = BOUND.alone + crowd.size * BOUND.connection + crowd.bodies * BOUND.body;
  const bad = crowded.bad + flooded.bad;
  return [
    atLeast("connections that are idle, half-sent or slow", crowd.size, count),
    atLeast("of them with 65,535 bytes of a body", crowd.bodies, 1),
    exactly("unknown keys not answered 401", addresses - refused, 0),
    atMost("resident memory", watch.most / MIB, bound, " MiB"),
    atLeast("answers to good clients meanwhile", crowded.answers + flooded.answers - bad, 1),
    exactly("of them other than 200", bad, 0),
    atMost("p99 while crowded, as a multiple of quiet", crowded.p99 / quiet.p99, patience),
    atMost("p99 while flooded, as a multiple of quiet", flooded.p99 / quiet.p99, patience),
    exactly("/health not answered 200", crowded.unhealthy + flooded.unhealthy, 0),
    exactly("lines on standard error", errorLines.length - 2, 0),
    exactly("exit code", code, 0),
  ];
}

/** Has clients behave in a process of their own, for `forMs`; resolves to how they fared. */
async function behave({ origin }: ServerProcess, key: string, forMs: number): Promise<Report> {
  const order: Order = { origin, key, clients: GOOD_CLIENTS, everyMs: EVERY_MS, forMs };
  const args = ["--quiet", "--allow-net", "tests/soak/good_clients.ts", JSON.stringify(order)];
  await using program = new DenoProcess(args, {});
  const { stdout } = await program.ended();
  return JSON.parse(stdout);
}

/** Looks again and again how much memory a process has. */
class MemoryWatch implements AsyncDisposable {
  most = 0;
  readonly #end: AbortController = new AbortController();
  readonly #watching: Promise<void>;

  constructor(pid: number) {
    this.#watching = this.#watch(pid);
  }

  async #watch(pid: number): Promise<void> {
    while (!this.#end.signal.aborted) {
      this.most = Math.max(this.most, await residentMemory(pid).catch(() => 0));
      await pause(MEMORY_INTERVAL);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#end.abort();
    await this.#watching;
  }
}

/** How many files a process may have open here. */
async function mostOpenFiles(): Promise<number> {
  const { stdout } = await new Deno.Command("bash", { args: ["-c", "ulimit -n"] }).output();
  const text = new TextDecoder().decode(stdout).trim();
  return text === "unlimited" ? 1_048_576 : Number(text);
}
