import type { ServerProcess } from "../support/process.ts";
import { TemporaryStore } from "../support/temporary_store.ts";

/** A place for a KV file whose disk can be full, or be read alone. */
export interface SmallDisk extends AsyncDisposable {
  readonly store: TemporaryStore;
  /** Largest file that a process may write, in KiB, where that stands for the disk. */
  readonly fileSize?: number;
  /** Makes room for this process. */
  makeRoom(server: ServerProcess): Promise<void>;
  /** Allows no more writes; resolves to whether that can be done. */
  makeReadOnly(): Promise<boolean>;
}

/** In MiB. */
const SIZE = 4;

/** A disk in memory where one can be mounted, and otherwise a limit on the size of files. */
export async function openSmallDisk(): Promise<SmallDisk> {
  const folder = await Deno.makeTempDir({ prefix: "animal_store_disk_" });
  const isMounted = await run("mount", "-t", "tmpfs", "-o", `size=${SIZE}m`, "tmpfs", folder);
  return isMounted ? mounted(folder) : limited(folder);
}

/** A folder of the usual disk, where each file may grow to a limit, which is raised to make room. */
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

/** Runs a program; resolves to whether it did what it was told. */
async function run(program: string, ...args: string[]): Promise<boolean> {
  try {
    const { success } = await new Deno.Command(program, { args, stderr: "null" }).output();
    return success;
  } catch {
    return false;
  }
}
