import { LOG_LINES_DROPPED } from "../metrics/metrics.ts";

/** What lines are written to, such as `Deno.stdout`. */
export interface Output {
  write(bytes: Uint8Array): Promise<number>;
}

const ENCODER = new TextEncoder();
const MAX_WAITING = 1_000_000;

/**
 * Writes lines in the background: nobody waits for a reader that has stalled. A line that finds a million
 * characters waiting is dropped; once there is room again, a line of `notice` tells how many were.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * let text = "";
 * const write = (bytes: Uint8Array) => {
 *   text += new TextDecoder().decode(bytes);
 *   return Promise.resolve(bytes.length);
 * };
 * const lines = new LineWriter({ write }, (dropped) => `${dropped} dropped`);
 * lines.write("one");
 * lines.write("two");
 * await lines.flushed();
 * assertEquals(text, "one\ntwo\n");
 * ```
 */
export class LineWriter {
  readonly #output: Output;
  readonly #notice: (dropped: number) => string;
  #waiting: string[] = [];
  #characters = 0;
  #dropped = 0;
  #writing: Promise<void> | undefined;

  constructor(output: Output, notice: (dropped: number) => string) {
    this.#output = output;
    this.#notice = notice;
  }

  /** Has the line written, after those before it. */
  write(line: string): void {
    if (this.#characters > MAX_WAITING) {
      this.#dropped++;
      LOG_LINES_DROPPED.add(1);
    } else {
      this.#waiting.push(line);
      this.#characters += line.length;
      this.#writing ??= this.#writeAll();
    }
  }

  /** Resolves once every line so far is written, or dropped. */
  async flushed(): Promise<void> {
    await this.#writing;
  }

  async #writeAll(): Promise<void> {
    // What comes within the same turn of the event loop goes into one write.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      if (this.#dropped > 0) this.#waiting.push(this.#notice(this.#dropped));
      const lines = this.#waiting;
      this.#waiting = [];
      this.#characters = 0;
      this.#dropped = 0;
      await this.#send(lines);
    }
    this.#writing = undefined;
  }

  /** A log that nobody reads any more is no reason to fail. */
  async #send(lines: readonly string[]): Promise<void> {
    const bytes = ENCODER.encode(`${lines.join("\n")}\n`);
    try {
      for (let sent = 0; sent < bytes.length;) sent += await this.#output.write(bytes.subarray(sent));
    } catch {
      LOG_LINES_DROPPED.add(lines.length);
    }
  }
}
