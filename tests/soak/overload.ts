import { DenoProcess, residentMemory, type ServerProcess } from "../process/process.ts";
import { PATH } from "../process/shipped.ts";
import { TemporaryStore } from "../process/temporary_store.ts";
import { Crowd, flood } from "./crowd.ts";
import type { Order, Report } from "./good_clients.ts";
import { pause } from "../../src/base/time.ts";
import { atLeast, atMost, type Effort, exactly, type Finding, type Note } from "./part.ts";

const MIB = 1_048_576;
/** Number of open files other than connections, here and in the service. */
const OTHER_FILES = 300;
const MEMORY_INTERVAL = 100;
const GOOD_CLIENTS = 8;
const EVERY_MS = 20;
/** Memory in MiB: of the service without connections, per connection, and per incomplete body of 64 KiB. */
const BOUND = { alone: 256, connection: 16 / 1_024, body: 320 / 1_024 };

/** Overloads the service with bad connections, and then with unknown keys, while good clients use it. */
export async function overload(
  { connections, addresses, minDuration, maxSlowdown }: Pick<
    Effort,
    "connections" | "addresses" | "minDuration" | "maxSlowdown"
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
  await behave(server, key, minDuration * 1_000 / 10);
  const quiet = await behave(server, key, minDuration * 1_000);

  using crowd = new Crowd();
  const behaving = behave(server, key, minDuration * 1_000);
  await crowd.open(count, server.port, key);
  note(`overload: ${crowd.size} connections`);
  const crowded = await behaving;
  const beside = behave(server, key, minDuration * 1_000);
  const refused = await flood(server.port, addresses);
  note(`overload: ${refused} unknown keys refused`);
  const flooded = await beside;
  crowd[Symbol.dispose]();
  const { code, errorLines } = await server.stop();

  const bound = BOUND.alone + crowd.size * BOUND.connection + crowd.bodies * BOUND.body;
  const bad = crowded.bad + flooded.bad;
  return [
    atLeast("idle, incomplete or slow connections", crowd.size, count),
    atLeast("of them with 65,535 bytes of a body", crowd.bodies, 1),
    exactly("unknown keys that did not get 401", addresses - refused, 0),
    atMost("resident memory", watch.most / MIB, bound, " MiB"),
    atLeast("responses to good clients in the meantime", crowded.answers + flooded.answers - bad, 1),
    exactly("of them other than 200", bad, 0),
    atMost("p99 with bad connections, as a multiple of the usual", crowded.p99 / quiet.p99, maxSlowdown),
    atMost("p99 with unknown keys, too, as a multiple of the usual", flooded.p99 / quiet.p99, maxSlowdown),
    exactly("/health responses other than 200", crowded.unhealthy + flooded.unhealthy, 0),
    exactly("lines on standard error", errorLines.length - 2, 0),
    exactly("exit code", code, 0),
  ];
}

/** Runs good clients in their own process for `forMs`. Resolves to their measurements. */
async function behave({ origin }: ServerProcess, key: string, forMs: number): Promise<Report> {
  const order: Order = { origin, path: PATH, key, clients: GOOD_CLIENTS, everyMs: EVERY_MS, forMs };
  const args = ["--quiet", "--allow-net", "tests/soak/good_clients.ts", JSON.stringify(order)];
  await using program = new DenoProcess(args, {});
  const { stdout } = await program.ended();
  return JSON.parse(stdout);
}

/** Records the maximum resident memory of a process, in bytes. */
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

/** Maximum number of open files of a process. */
async function mostOpenFiles(): Promise<number> {
  const { stdout } = await new Deno.Command("bash", { args: ["-c", "ulimit -n"] }).output();
  const text = new TextDecoder().decode(stdout).trim();
  return text === "unlimited" ? 1_048_576 : Number(text);
}
