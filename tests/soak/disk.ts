import { assertEquals, assertGreaterOrEqual, assertMatch } from "@std/assert";
import { call, outcome, upTo } from "../support/client.ts";
import { runServer, type ServerProcess } from "../process/process.ts";
import { addItem, SHIPPED, TITLE } from "../process/shipped.ts";
import { findFaults } from "../support/stored_rows.ts";
import { TemporaryStore } from "../process/temporary_store.ts";
import { pause } from "../../src/base/time.ts";

const MAX_WRITES = 30_000;
const AT_ONCE = 50;
/** The length of an Idempotency-Key. */
const LENGTH = 255;
/** If so many items in a row are refused, none is accepted any more. */
const WHILE_FULL = 20;

/** Fills the disk of a running service, makes room again, and then starts the service on a read-only file. */
export async function disk(note: (line: string) => void): Promise<void> {
  await using disk = await openSmallDisk();
  const { store, fileSize } = disk;
  const { key } = await store.createAccount();
  await using server = await store.serve({}, fileSize === undefined ? {} : { fileSize });
  const accepted = await writeUntilFull(server, key);
  const { added, refusals } = await writeUntilRefused(server, key);
  note(`The disk was full after ${accepted} items, then ${added} that took less room`);
  const [ready, health] = [
    await call(server, undefined, "GET /ready"),
    await call(server, undefined, "GET /health"),
  ];
  await disk.makeRoom(server);
  await untilAdded(server, key);
  const { code, errorLines } = await server.stop();
  const [stored, faults] = await countRows(store.kvPath);

  assertEquals([...refusals], ["503 store_unavailable"]);
  assertEquals([ready.status, health.status], [503, 200]);
  assertGreaterOrEqual(accepted, 10);
  assertEquals([stored, faults], [accepted + added + 1, []]);
  assertEquals([code, errorLines.filter(isStrange)], [0, []]);
  if (!await disk.makeReadOnly()) return;
  const start = await runServer({ KV_PATH: store.kvPath });
  assertEquals([start.code, start.errorLines.length], [1, 1]);
  assertMatch(`${start.errorLines}`, /^The KV .+ cannot be used: /);
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

/** Waits until an item can be added. */
async function untilAdded(server: ServerProcess, key: string): Promise<void> {
  while ((await addItem(server, key)).status !== 201) await pause(50);
}

/** Counts the items, and finds rows that lack their counterpart. */
async function countRows(kvPath: string): Promise<[number, string[]]> {
  using kv = await Deno.openKv(kvPath);
  const items = await Array.fromAsync(kv.list({ prefix: SHIPPED.rows.items }));
  return [items.length, await findFaults(kv, [SHIPPED])];
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
