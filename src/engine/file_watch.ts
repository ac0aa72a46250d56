import { closeSync, fstatSync, openSync } from "node:fs";

/** How often the files are checked, in ms. */
const INTERVAL = 500;
/** The files that SQLite writes to, by the ends of their names: the KV file, its write-ahead log and the log's index. */
const ENDS = ["", "-wal", "-shm"];

/** A file, and a descriptor of it. */
interface OpenFile {
  readonly descriptor: number;
  /** How messages name it. */
  readonly name: string;
  /** Whether its file system counts the names of files. */
  readonly hadName: boolean;
}

/**
 * Watches a KV file that SQLite has open. If one of its files loses its name, SQLite keeps writing to it, where nobody
 * finds it. A file system reports it when the KV file is removed or renamed, but not when another file takes its name:
 * an open descriptor then says that no name is left.
 */
export class FileWatch {
  readonly #onLost: (reason: string) => void;
  readonly #timer: ReturnType<typeof setInterval> = setInterval(() => this.#check(), INTERVAL);
  #watcher: Deno.FsWatcher | undefined;
  #files: readonly OpenFile[];

  /** Calls `onLost` once, with the reason. The files are opened now, because a service may give up access to files. */
  constructor(path: string, onLost: (reason: string) => void) {
    this.#onLost = onLost;
    this.#files = ENDS.flatMap((end) => openFile(path, end));
    this.#watch(path);
  }

  /** Stops watching. The descriptors stay open. */
  stop(): void {
    clearInterval(this.#timer);
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  /** Closes the descriptors. Call it after SQLite has closed the files: it drops the locks that this process has on them. */
  close(): void {
    for (const { descriptor } of this.#files) closeSync(descriptor);
    this.#files = [];
  }

  #check(): void {
    const lost = this.#files.find(({ hadName, descriptor }) => hadName && !mayHaveName(descriptor));
    if (lost) this.#lose(`${lost.name} was removed or replaced`);
  }

  /** Watches the KV file itself, because each commit is several events in its folder, which would double its cost. */
  async #watch(path: string): Promise<void> {
    try {
      this.#watcher = Deno.watchFs(path);
      for await (const { kind } of this.#watcher) {
        if (kind === "remove" || kind === "rename") return this.#lose("The KV file was removed or renamed");
      }
    } catch {
      // Some file systems cannot be watched.
    }
  }

  #lose(what: string): void {
    this.stop();
    this.#onLost(`${what}; stop the service with SIGTERM, and follow its guide`);
  }
}

/** Opens a file of the KV; none if it does not exist. */
function openFile(path: string, end: string): OpenFile[] {
  try {
    const descriptor = openSync(path + end, "r");
    const name = end === "" ? "The KV file" : `The file ${end} of the KV`;
    return [{ descriptor, name, hadName: mayHaveName(descriptor) }];
  } catch {
    return []; // The service runs without noticing.
  }
}

/** Whether a name of the file is left. If that cannot be read, as on Deno before 2.7 without access to files, it may be. */
function mayHaveName(descriptor: number): boolean {
  try {
    return fstatSync(descriptor).nlink > 0;
  } catch {
    return true;
  }
}
