import { dirname, resolve } from "node:path";
import { CommandError } from "./terminal.ts";

/** Whether there is a file, a folder or a link with this path. */
export async function exists(path: string): Promise<boolean> {
  try {
    await Deno.lstat(path);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/**
 * Makes a file, for its owner alone, which appears under its path once it is written and on the disk, and never
 * in the place of another. `write` gets the path to write to. If it fails, nothing is left.
 *
 * @throws {CommandError} when there is such a path already, or nothing can be made in its folder.
 */
export async function writeAtomically(path: string, write: (path: string) => Promise<void>): Promise<void> {
  const folder = dirname(resolve(path));
  if (!await exists(folder)) throw new CommandError(`there is no folder ${folder}`);
  const unfinished = await makeUnfinished(folder);
  try {
    const file = `${unfinished}/file`;
    await write(file);
    if (Deno.build.os !== "windows") await Deno.chmod(file, 0o600);
    await sync(file, { read: true, write: true });
    await giveName(file, path);
  } finally {
    await Deno.remove(unfinished, { recursive: true });
  }
  if (Deno.build.os !== "windows") await sync(folder, { read: true });
}

/**
 * A folder, so that what SQLite makes beside the file meanwhile goes with it. Not named after the file, whose name
 * may be as long as it can be, or have characters that Deno puts into no such name: the colons of a time.
 */
async function makeUnfinished(folder: string): Promise<string> {
  try {
    return await Deno.makeTempDir({ dir: folder, suffix: ".unfinished" });
  } catch (error) {
    // Deno tells why, but not where.
    const reason = error instanceof Error ? error.message.replace(/: tmpdir$/, "") : typeof error;
    throw new CommandError(`nothing can be made in ${folder}: ${reason}`);
  }
}

async function sync(path: string, options: Deno.OpenOptions): Promise<void> {
  using file = await Deno.open(path, options);
  await file.sync();
}

/** A link, unlike a new name, never takes the place of a file that came to be there meanwhile. */
async function giveName(file: string, path: string): Promise<void> {
  try {
    await Deno.link(file, path);
  } catch {
    if (await exists(path)) throw new CommandError(`${path} exists, though it did not a moment ago`);
    // There are file systems without links.
    await Deno.rename(file, path);
  }
}
