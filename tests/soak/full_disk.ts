import type { ServerProcess } from "../process/process.ts";
import { TemporaryStore } from "../process/temporary_store.ts";

/** A disk for a KV file, which can be full or read-only. */
export interface SmallDisk extends AsyncDisposable {
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
export async function openSmallDisk(): Promise<SmallDisk> {
  const folder = await Deno.makeTempDir({ prefix: "small_disk_" });
  const isMounted = await run("mount", "-t", "tmpfs", "-o", `size=${SIZE}m`, "tmpfs", folder);
  return isMounted ? mounted(folder) : limited(folder);
}

/** Simulates a small disk with a limit on the size of each file, which is raised to make room. */
export function limited(folder: string): SmallDisk {
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
