import { lastPage } from "./catalogue.ts";
import { RARE } from "./collection.ts";
import { type Contender, start, type Target } from "./contenders.ts";
import { type Effort, type Entry, load, takeTurns } from "./measure.ts";
import { figure, median, table } from "./report.ts";
import { note } from "./terminal.ts";
import { LIST, LIST_FOR_MANY } from "./workloads.ts";

/** A result and its name. */
type Row = readonly [name: string, value: number];

/** A table of commits, latency, memory and start-up, with a column for each checkout. */
export async function growth(
  checkouts: readonly Contender[],
  effort: Effort,
): Promise<string> {
  const rows = new Map<string, string[]>();
  for (const checkout of checkouts) {
    for (const measure of [commits, latencies, memory, startUp]) {
      for await (const [name, value] of measure(checkout, effort)) {
        note(`${name}: ${figure(value)}`);
        rows.set(name, [...rows.get(name) ?? [], figure(value)]);
      }
    }
  }
  return table(
    ["", ...checkouts.map(({ name }) => name)],
    [...rows].map((row) => row.flat()),
  );
}

async function* commits(
  checkout: Contender,
  { seconds }: Effort,
): AsyncGenerator<Row> {
  await using cleanup = new AsyncDisposableStack();
  const target = await start(checkout, cleanup, LIST.caller);
  const before = await countTransactions(target);
  const { requests } = await load(target, LIST, seconds);
  const commits = await countTransactions(target) - before;
  yield ["KV commits for 1,000 lists", commits * 1000 / requests];
}

/** Reads the number of commits from the index of SQLite's write-ahead log: https://sqlite.org/walformat.html. */
async function countTransactions({ dataPath }: Target): Promise<number> {
  const { buffer } = await Deno.readFile(`${dataPath}-shm`);
  return new DataView(buffer).getUint32(8, true);
}

async function* latencies(
  checkout: Contender,
  effort: Effort,
): AsyncGenerator<Row> {
  await using cleanup = new AsyncDisposableStack();
  const entries: Entry[] = [];
  for (const size of [1_000, 1_000_000]) {
    const target = await start(checkout, cleanup, LIST.caller, size);
    const addEntry = (page: string, path: string) => {
      const name = `p50 in ms, ${page} of ${figure(size)} items`;
      entries.push({ name, target, workload: { ...LIST, path } });
    };
    addEntry("first page", LIST.path);
    addEntry("last page", await lastPage(target));
    if (RARE) addEntry("rare filter", `${LIST.path}&${RARE.query}`);
  }
  const medians = await takeTurns(entries, effort, "p50");
  for (const [index, { name }] of entries.entries()) yield [name, medians[index] ?? NaN];
}

async function* memory(checkout: Contender): AsyncGenerator<Row> {
  await using cleanup = new AsyncDisposableStack();
  const target = await start(checkout, cleanup, LIST_FOR_MANY.caller);
  let sent = 0;
  for (const [count, connections] of [[10_000, 1], [1_000_000, 64]] as const) {
    while (sent < count) {
      sent += (await load(target, { ...LIST_FOR_MANY, connections }, 1)).requests;
    }
    const ps = new Deno.Command("ps", {
      args: ["-o", "rss=", "-p", `${target.pid}`],
    });
    const kibibytes = Number(
      new TextDecoder().decode((await ps.output()).stdout),
    );
    yield [`memory in MiB after ${figure(count)} requests`, kibibytes / 1024];
  }
}

async function* startUp(
  checkout: Contender,
  { rounds }: Effort,
): AsyncGenerator<Row> {
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    await using cleanup = new AsyncDisposableStack();
    times.push((await start(checkout, cleanup, "one", 0)).startUp);
  }
  yield ["from start to first response in ms", median(times)];
}
