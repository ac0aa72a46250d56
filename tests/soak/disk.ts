import { addAnimal, call, outcome } from "../support/client.ts";
import { type Outcome, runServer, type ServerProcess } from "../support/process.ts";
import { findFaults } from "../support/stored_rows.ts";
import { openSmallDisk, type SmallDisk } from "./full_disk.ts";
import { atLeast, atMost, equal, exactly, type Finding, type Note, pause } from "./part.ts";

const MAX_WRITES = 900;
const MESSAGE = "x".repeat(9_000);
const WHILE_FULL = 20;
const RECOVERY = 10_000;

/** Fills the disk under a service that writes, makes room again, and then starts it on a file it cannot write. */
export async function disk(_: object, note: Note): Promise<Finding[]> {
  await using small = await openSmallDisk();
  return await strain(small, note);
}

/** The same on this disk. */
export async function strain({ store, fileSize, ...disk }: SmallDisk, note: Note): Promise<Finding[]> {
  const { key } = await store.createAccount();
  await using server = await store.serve({}, fileSize === undefined ? {} : { fileSize });
  const accepted = await writeUntilFull(server, key);
  note(`disk: full after ${accepted} messages`);
  // What is smaller may still fit in.
  while ((await addAnimal(server, key, "last")).status === 201);
  const answers = new Set<string>();
  for (let count = 0; count < WHILE_FULL; count++) {
    answers.add(outcome(await addAnimal(server, key, "full")));
  }
  const [ready, health] = [
    await call(server, undefined, "GET /ready"),
    await call(server, undefined, "GET /health"),
  ];
  await disk.makeRoom(server);
  const recovery = await untilAdded(server, key);
  const { code, errorLines } = await server.stop();
  const [stored, faults] = await look(store.kvPath);
  const start = await disk.makeReadOnly() ? await runServer({ KV_PATH: store.kvPath }) : undefined;

  return [
    equal("writes while the disk is full", [...answers].join(", "), "503 store_unavailable"),
    equal("/ready and /health meanwhile", `${ready.status}, ${health.status}`, "503, 200"),
    atMost("until it writes again, by itself", recovery, RECOVERY, " ms"),
    atLeast("messages accepted until then", accepted, 10),
    exactly("of them lost, or there without", Math.abs(stored - accepted), 0),
    exactly("rows without their counterpart", faults, 0),
    exactly("lines on standard error that are not the log's", errorLines.filter(isStrange).length, 0),
    exactly("exit code", code, 0),
    ...(start ? [equal("start on a disk that cannot be written", nameOf(start), "refused in one line")] : []),
  ];
}

/** Queues messages for as long as they are accepted; resolves to how many were. */
async function writeUntilFull(server: ServerProcess, key: string): Promise<number> {
  for (let accepted = 0; accepted < MAX_WRITES; accepted++) {
    const { status } = await call(server, key, "POST /v1/messages", { json: { message: MESSAGE } });
    if (status !== 202) return accepted;
  }
  throw new Error("The disk does not get full");
}

/** Resolves once an animal can be added, to how many ms that took. */
async function untilAdded(server: ServerProcess, key: string): Promise<number> {
  const started = performance.now();
  while (performance.now() - started < RECOVERY) {
    if ((await addAnimal(server, key, "after")).status === 201) break;
    await pause(50);
  }
  return performance.now() - started;
}

/** How many messages there are, and how many rows without those that belong to them. */
async function look(kvPath: string): Promise<[number, number]> {
  using kv = await Deno.openKv(kvPath);
  const messages = await Array.fromAsync(kv.list({ prefix: ["messages"] }));
  return [messages.length, (await findFaults(kv)).length];
}

function nameOf({ code, errorLines }: Outcome): string {
  const isRefused = code === 1 && errorLines.length === 1 &&
    /^The KV .+ cannot be used: /.test(`${errorLines}`);
  return isRefused ? "refused in one line" : errorLines.join(" ");
}

/** Whether a line is neither the log's nor one that every start prints. */
function isStrange(line: string): boolean {
  return !/^Listening on |^Animal Store |^\{"time":.*\}$/.test(line);
}
