import { assert, assertEquals, assertRejects } from "@std/assert";
import type { Change } from "../../src/batching/change.ts";
import { Sequence } from "../../src/batching/sequence.ts";
import type { CommitResult } from "../../src/kv/commit.ts";
import { Connection } from "../../src/kv/connection.ts";
import { StoreUnavailable } from "../../src/kv/deadline.ts";
import { AGAIN, pause, retried } from "../../src/kv/retried.ts";
import { decodeJson, encodeJson } from "../../src/kv/row.ts";
import { Store } from "../../src/kv/store.ts";
import { hang } from "../kv/disturbed_kv.ts";
import { calmNetwork, FakeKv } from "../kv/fake_kv.ts";
import { VirtualTime } from "../virtual_time.ts";

const KEY = ["ids"];

/** A process that draws numbers from a sequence and stores each. */
class Process {
  readonly network = calmNetwork();
  readonly store: Store;
  readonly sequence: Sequence;
  /** Numbers in whose commits a range was taken. */
  readonly took: number[] = [];
  /** Whether the next uses are refused for a reason of their own. */
  refuses = false;

  constructor(kv: FakeKv) {
    const connection = new Connection([kv.connect(this.network)], { deadline: 100 });
    this.store = new Store(connection, { maxChecks: 10, clock: () => 0 });
    this.sequence = new Sequence(this.store, KEY);
  }

  draw(): Promise<number | null> {
    return this.sequence.draw((number, change) => this.#use(number, change));
  }

  /** Draws so many at once; again where a draw is refused. */
  drawMany(count: number): Promise<number[]> {
    const draw = () => retried(async () => await this.draw() ?? AGAIN);
    return Promise.all(Array.from({ length: count }, draw));
  }

  /** What the row holds. */
  async next(): Promise<number> {
    const entry = await this.store.get(KEY);
    return entry ? decodeJson<{ next: number }>(entry).next : 0;
  }

  #use(number: number, { checks, sets }: Change): Promise<CommitResult> {
    if (sets.length > 0) this.took.push(number);
    const own = { key: ["used", number], versionstamp: this.refuses ? "none such" : null };
    return this.store.commit((operation) => {
      operation.check(own, ...checks).set(own.key, encodeJson({}));
      for (const [key, value] of sets) operation.set(key, value);
    });
  }
}

function range(start: number, end: number): number[] {
  return Array.from({ length: end - start }, (_, index) => start + index);
}

Deno.test("Sequence.draw() takes numbers from 1 one by one, and a range when many are wanted", async () => {
  using _time = new VirtualTime();
  const single = new Process(new FakeKv());
  for (const number of range(1, 6)) {
    assertEquals([await single.draw(), await single.next()], [number, number + 1]);
  }
  assertEquals(single.took, range(1, 6));

  const process = new Process(new FakeKv());
  assertEquals(await process.drawMany(20), range(1, 21));
  assertEquals([process.took, await process.next()], [[1, 2], 2 + 1 + 16 * 19]);
  assertEquals(await process.drawMany(20), range(21, 41));
  assertEquals(process.took, [1, 2]);
  assertEquals(await process.drawMany(601), range(41, 642));
  assertEquals([process.took, await process.next()], [[1, 2, 307, 596], 596 + 1_000]);
});

Deno.test("Sequence.draw() gives each number once, ascending, when several processes draw", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  const processes = [new Process(kv), new Process(kv), new Process(kv)];

  const drawing = processes.map(async (process) => {
    const numbers: number[] = [];
    for (const atOnce of [1, 5, 1, 20, 1, 1, 7]) numbers.push(...await process.drawMany(atOnce));
    return numbers;
  });
  const drawn = await time.until(Promise.all(drawing), 10_000);

  for (const numbers of drawn) assertEquals(numbers, numbers.toSorted((a, b) => a - b));
  assertEquals(new Set(drawn.flat()).size, 3 * 36);
  assert(Math.max(...drawn.flat()) < await new Process(kv).next());
});

Deno.test("Sequence.draw() leaves a gap where a range was lost, and none where its commit was refused", async () => {
  using _time = new VirtualTime();
  const kv = new FakeKv();
  const [lost, other] = [new Process(kv), new Process(kv)];
  await lost.drawMany(3);

  assertEquals(await other.draw(), 35);
  other.refuses = true;
  assertEquals([await other.draw(), await other.draw()], [null, null]);
  other.refuses = false;
  assertEquals(await other.draw(), 36);
  assertEquals(await lost.drawMany(31), range(4, 35));
  assertEquals(await lost.draw(), null);
  assertEquals(await lost.draw(), 37);
});

Deno.test("Sequence.draw() goes on after a failure that may have taken a range, and gives no number of it", async () => {
  using time = new VirtualTime();
  const process = new Process(new FakeKv());
  await process.draw();
  process.network.commit = (apply) => (apply(), hang());
  const [lost, waiting] = [process.draw(), process.draw()];
  const failure = assertRejects(() => lost, StoreUnavailable);
  await time.advance(99);
  process.network.commit = calmNetwork().commit;
  await time.advance(1);

  await failure;
  assertEquals(await waiting, 3);
});

Deno.test("Sequence.draw() takes the next range ahead of need where KV is far away, and nobody waits for it", async () => {
  using time = new VirtualTime();
  const kv = new FakeKv();
  const [process, other] = [new Process(kv), new Process(kv)];
  process.network.read = () => pause(100);
  process.network.commit = (apply) => pause(100).then(apply);
  for (let round = 0; round < 2; round++) await time.until(process.drawMany(20), 1_000);
  const drawn: number[] = [];
  const times: number[] = [];

  for (let round = 0; round < 30; round++) {
    if (round === 20) await other.draw();
    const started = time.now;
    drawn.push(...await time.until(process.drawMany(20), 1_000));
    times.push(time.now - started);
  }

  assertEquals([drawn.length, new Set(drawn).size], [600, 600]);
  // One number is the other's, and one was refused.
  assertEquals([drawn[0], drawn.at(-1)], [41, 642]);
  assertEquals(process.took.length, 5);
  // But for whoever would take what the other has taken: he reads the row, and draws again.
  assertEquals(times.filter((ms) => ms > 101).length, 1);
});
