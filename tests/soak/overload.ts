import { assertEquals, assertGreater, assertLessOrEqual } from "@std/assert";
import { DenoProcess, residentMemory, type ServerProcess } from "../process/process.ts";
import { PATH } from "../process/shipped.ts";
import { TemporaryStore } from "../process/temporary_store.ts";
import { Crowd, flood } from "./crowd.ts";
import type { Order, Report } from "./good_clients.ts";
import { pause } from "../../src/base/time.ts";

const MIB = 1_048_576;
/** Number of open files other than connections, here and in the service. */
const OTHER_FILES = 300;
const MEMORY_INTERVAL = 100;
const GOOD_CLIENTS = 8;
const EVERY_MS = 20;
/** Memory in MiB: of the service without connections, per connection, and per incomplete body of 64 KiB. */
const BOUND = { alone: 256, connection: 16 / 1_024, body: 320 / 1_024 };

/** Number of bad connections, as far as the system allows. */
const CONNECTIONS = 10_000;
/** Number of addresses that send unknown keys. */
const ADDRESSES = 300_000;
/** Minimum duration of the bad connections, and of the flood of unknown keys after them, in ms. */
const DURATION = 15_000;
/** Maximum p99 latency of good clients in the meantime, as a multiple of the usual one. */
const MAX_SLOWDOWN = 25;

/** Overloads the service with bad connections, and then with unknown keys, while good clients use it. */
export async function overload(note: (line: string) => void): Promise<void> {
  await using store = await TemporaryStore.create();
  const { key } = await store.createAccount();
  const openFiles = await mostOpenFiles();
  const count = Math.min(CONNECTIONS, openFiles - OTHER_FILES);
  const variables = { CLIENT_ADDRESS_HEADER: "x-real-ip" };
  await using server = await store.serve(variables, { openFiles, lifetime: 600_000 });
  await using watch = new MemoryWatch(server.pid);
  await behave(server, key, DURATION / 10);
  const quiet = await behave(server, key, DURATION);

  using crowd = new Crowd();
  const behaving = behave(server, key, DURATION);
  await crowd.open(count, server.port, key);
  note(`${crowd.size} connections`);
  const crowded = await behaving;
  const beside = behave(server, key, DURATION);
  const refused = await flood(server.port, ADDRESSES);
  note(`${refused} unknown keys refused`);
  const flooded = await beside;
  crowd[Symbol.dispose]();
  const { code, errorLines } = await server.stop();

  const bound = BOUND.alone + crowd.size * BOUND.connection + crowd.bodies * BOUND.body;
  const [p99, p99Flooded] = [crowded, flooded].map((report) => report.p99 / quiet.p99);
  note(
    `${Math.round(watch.most / MIB)} MiB; p99 is ${p99?.toFixed(1)} and ${
      p99Flooded?.toFixed(1)
    } times the usual`,
  );
  assertEquals([crowd.size, refused, errorLines.length, code], [count, ADDRESSES, 2, 0]);
  assertLessOrEqual(watch.most / MIB, bound);
  for (const { answers, bad, unhealthy, p99 } of [crowded, flooded]) {
    assertGreater(answers, 0);
    assertEquals([bad, unhealthy], [0, 0]);
    assertLessOrEqual(p99, MAX_SLOWDOWN * quiet.p99);
  }
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
