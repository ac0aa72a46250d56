import { call, outcome, upTo } from "../support/client.ts";
import { type Outcome, runServer, type ServerProcess } from "../process/process.ts";
import { addItem, SHIPPED, TITLE } from "../process/shipped.ts";
import { findFaults } from "../support/stored_rows.ts";
import { TemporaryStore } from "../process/temporary_store.ts";
import { pause } from "../../src/base/time.ts";
import { atLeast, atMost, exactly, type Finding, type Note } from "./part.ts";

const MAX_WRITES = 30_000;
const AT_ONCE = 50;
/** The length of an Idempotency-Key. */
const LENGTH = 255;
/** If so many items in a row are refused, none is accepted any more. */
const WHILE_FULL = 20;
const RECOVERY = 10_000;

/** Fills the disk of a running service, makes room again, and then starts the service on a read-only file. */
export async function disk(_: object, note: Note): Promise<Finding[]> {
  await using disk = await openSmallDisk();
  const { store, fileSize } = disk;
  const { key } = await store.createAccount();
  await using server = await store.serve({}, fileSize === undefined ? {} : { fileSize });
  const accepted = await writeUntilFull(server, key);
  const { added, refusals } = await writeUntilRefused(server, key);
  note(`disk: full after ${accepted} items, then ${added} that took less room`);
  const [ready, health] = [
    await call(server, undefined, "GET /ready"),
    await call(server, undefined, "GET /health"),
  ];
  await disk.makeRoom(server);
  const recovery = await untilAdded(server, key);
  const { code, errorLines } = await server.stop();
  const [stored, faults] = await countRows(store.kvPath);
  const start = await disk.makeReadOnly() ? await runServer({ KV_PATH: store.kvPath }) : undefined;

  return [
    exactly("writes while the disk is full", [...refusals].join(", "), "503 store_unavailable"),
    exactly("/ready and /health in the meantime", `${ready.status}, ${health.status}`, "503, 200"),
    atMost("until it writes again, without a restart", recovery, RECOVERY, " ms"),
    atLeast("items accepted before that", accepted, 10),
    exactly("difference from items stored", Math.abs(stored - accepted - added - 1), 0),
    exactly("rows without their counterpart", faults, 0),
    exactly("lines on standard error outside the log", errorLines.filter(isStrange).length, 0),
    exactly("exit code", code, 0),
    ...(start ? [exactly("start on a read-only disk", nameOf(start), "refused in one line")] : []),
  ];
}

/** Adds items, many at once, until one is not accepted. Resolves to the number of accepted items. */
async function writeUntilFull(server: ServerProcess, key: string): Promise<number> {
  let accepted = 0;
  for (let sent = 0; sent < MAX_WRITES; sent += AT_ONCE) {
    const replies = await Promise.all(
      upTo(AT_ONCE).map((n) =>
        addItem(server, key, { "idempotency-key": `${sent + n}`.padStart(LENGTH, "k") })
      ),
    );
    const added = replies.filter(({ status }) => status === 201).length;
    accepted += added;
    if (added < AT_ONCE) return accepted;
  }
  throw new Error("The disk did not fill up");
}

/** Adds items one by one, which may fit where many at once do not, until none is accepted any more. */
async function writeUntilRefused(
  server: ServerProcess,
  key: string,
): Promise<{ added: number; refusals: Set<string> }> {
  const refusals = new Set<string>();
  let added = 0;
  for (let refused = 0; refused < WHILE_FULL;) {
    const reply = await addItem(server, key);
    const isAdded = reply.status === 201;
    if (isAdded) added++;
    else refusals.add(outcome(reply));
    refused = isAdded ? 0 : refused + 1;
  }
  return { added, refusals };
}

/** Waits until an item can be added. Resolves to the time that took, in ms. */
async function untilAdded(server: ServerProcess, key: string): Promise<number> {
  const started = performance.now();
  while (performance.now() - started < RECOVERY) {
    if ((await addItem(server, key)).status === 201) break;
    await pause(50);
  }
  return performance.now() - started;
}

/** Counts the items, and the rows that lack their counterpart. */
async function countRows(kvPath: string): Promise<[number, number]> {
  using kv = await Deno.openKv(kvPath);
  const items = await Array.fromAsync(kv.list({ prefix: SHIPPED.rows.items }));
  return [items.length, (await findFaults(kv, [SHIPPED])).length];
}

function nameOf({ code, errorLines }: Outcome): string {
  const isRefused = code === 1 && errorLines.length === 1 &&
    /^The KV .+ cannot be used: /.test(`${errorLines}`);
  return isRefused ? "refused in one line" : errorLines.join(" ");
}

/** Whether a line belongs neither to the log nor to a normal start. */
function isStrange(line: string): boolean {
  const isUsual = ["Listening on", TITLE].some((start) => line.startsWith(`${start} `));
  return !isUsual && !/^\{"time":.*\}$/.test(line);
}

/** A disk for a KV file, which can be full or read-only. */
interface SmallDisk extends AsyncDisposable {
  readonly store: TemporaryStore;
  /** Maximum size of a file that a process writes, in KiB, if that limit simulates the disk. */
  readonly fileSize?: number;
  /** Makes room for this process. */
  makeRoom(server: ServerProcess): Promise<void>;
  /** Prevents further writes. Resolves to false if that is impossible. */
  makeReadOnly(): Promise<boolean>;
}

/** Size of the disk, in MiB. */
const SIZE = 4;

/** Mounts a disk in memory or, if that is impossible, limits the size of files. */
async function openSmallDisk(): Promise<SmallDisk> {
  const folder = await Deno.makeTempDir({ prefix: "small_disk_" });
  const isMounted = await run("mount", "-t", "tmpfs", "-o", `size=${SIZE}m`, "tmpfs", folder);
  return isMounted ? mounted(folder) : limited(folder);
}

/** Simulates a small disk with a limit on the size of each file, which is raised to make room. */
function limited(folder: string): SmallDisk {
  const store = TemporaryStore.within(folder);
  return {
    store,
    fileSize: SIZE * 1_024 / 2,
    async makeRoom({ pid }) {
      await run("prlimit", "--pid", `${pid}`, "--fsize=unlimited");
    },
    async makeReadOnly() {
      await Deno.chmod(store.kvPath, 0o400);
      return Deno.uid() !== 0;
    },
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

function mounted(folder: string): SmallDisk {
  return {
    store: TemporaryStore.within(folder),
    async makeRoom() {
      await run("mount", "-o", `remount,size=${100 * SIZE}m`, folder);
    },
    makeReadOnly: () => run("mount", "-o", "remount,ro", folder),
    async [Symbol.asyncDispose]() {
      await run("umount", folder);
      await Deno.remove(folder, { recursive: true });
    },
  };
}

/** Runs a program. Resolves to whether it succeeded. */
async function run(program: string, ...args: string[]): Promise<boolean> {
  try {
    const { success } = await new Deno.Command(program, { args, stderr: "null" }).output();
    return success;
  } catch {
    return false;
  }
}
