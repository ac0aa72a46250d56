import { setImmediate } from "node:timers/promises";
import { assertEquals, assertMatch } from "@std/assert";
import { LineWriter, type Output } from "../../src/app/log.ts";
import { Counter } from "../../src/base/prometheus.ts";

/** An output whose writes complete on demand. */
class SlowOutput implements Output {
  readonly writes: string[] = [];
  readonly lost: Counter = new Counter("lost_total", "Lost.");
  readonly lines: LineWriter = new LineWriter(this, (dropped) => `${dropped} dropped`, this.lost);
  #length = 0;
  #resolve: (count: number) => void = () => {};

  write(bytes: Uint8Array): Promise<number> {
    this.writes.push(new TextDecoder().decode(bytes));
    const { promise, resolve } = Promise.withResolvers<number>();
    [this.#length, this.#resolve] = [bytes.length, resolve];
    return promise;
  }

  /** Completes the last write, or its first `count` bytes, and waits until the next one has started. */
  async complete(count: number = this.#length): Promise<void> {
    this.#resolve(count);
    await setImmediate();
  }
}

Deno.test("LineWriter writes waiting lines together in order, and flushed() waits for the last one", async () => {
  const output = new SlowOutput();
  const { lines, writes } = output;
  await lines.flushed();
  let flushed = false;

  lines.write("a");
  lines.write("b");
  assertEquals(writes, []);
  await output.complete();
  const flushing = lines.flushed().then(() => flushed = true);
  lines.write("c");
  lines.write("é");
  assertEquals(writes, ["a\nb\n"]);
  await output.complete();
  assertEquals([writes, flushed], [["a\nb\n", "c\né\n"], false]);
  await output.complete();
  await flushing;
  lines.write("d");
  await output.complete();

  assertEquals(writes, ["a\nb\n", "c\né\n", "d\n"]);
});

Deno.test("LineWriter.write() continues after a partial write", async () => {
  const output = new SlowOutput();

  output.lines.write("abcdef");
  for (const count of [0, 2, 4, 1]) await output.complete(count);

  assertEquals(output.writes, ["abcdef\n", "cdef\n", "\n"]);
});

Deno.test("LineWriter.write() drops, counts and reports lines while a million characters wait", async () => {
  const output = new SlowOutput();
  const { lines, writes } = output;
  const line = "x".repeat(99_999);
  lines.write("first");
  await output.complete();

  for (let count = 0; count < 1_000; count++) lines.write(line);
  await output.complete();
  lines.write("next");
  await output.complete();

  assertEquals(writes, ["first\n", `${line}\n`.repeat(11) + "989 dropped\n", "next\n"]);
  assertMatch(output.lost.text(), / 989\n$/);
});

Deno.test("LineWriter.write() tries the next line after a failure and counts the lost lines", async () => {
  const lost = new Counter("lost_total", "Lost.");
  const tried: string[] = [];
  const write = (bytes: Uint8Array) => {
    tried.push(new TextDecoder().decode(bytes));
    return Promise.reject(new Deno.errors.BrokenPipe());
  };
  const lines = new LineWriter({ write }, String, lost);

  for (const line of ["a", "b"]) {
    lines.write(line);
    await lines.flushed();
  }

  assertEquals(tried, ["a\n", "b\n"]);
  assertMatch(lost.text(), / 2\n$/);
});
