import { assertEquals } from "@std/assert";
import { type LogRow, mergeLogs, rowOf } from "../../src/changes/logs.ts";
import { encodeJson } from "../../src/engine/mod.ts";
import { seededRandom } from "../support/time.ts";

/** Rows of a log with these stamps. The entry of each names its log, too. */
function rowsOf(log: string, ...stamps: readonly string[]): LogRow<string>[] {
  return stamps.map((stamp, index) => ({ stamp, at: index, entries: [`${log}${stamp}`] }));
}

Deno.test.each<
  [what: string, size: number, logs: readonly (readonly string[])[], expected: [string, end: string]]
>([
  ["nothing", 9, [[], []], ["", "5"]],
  ["rows in the order of their stamps", 9, [["2", "5"], ["1", "3"]], ["b1 a2 b3 a5", "5"]],
  ["the rows of a commit together", 9, [["2", "4"], ["1", "4"]], ["b1 a2 a4+b4", "5"]],
  ["nothing after the horizon", 9, [["5", "6"], ["7"]], ["a5", "5"]],
  ["nothing after the end of a log that may have more", 3, [["0", "1", "2"], ["2", "3"]], [
    "a0 a1 a2+b2",
    "2",
  ]],
  ["nothing after the first end of two logs that may have more", 2, [["1", "4"], ["2", "3"]], [
    "a1 b2 b3",
    "3",
  ]],
])("mergeLogs() has %s", (_, size, [a = [], b = []], expected) => {
  const { commits, end } = mergeLogs([rowsOf("a", ...a), rowsOf("b", ...b)], size, "5");

  assertEquals([commits.map(({ entries }) => entries.join("+")).join(" "), end], expected);
});

Deno.test("rowOf() has the time of the last entry of a commit", () => {
  const entries = [{ at: 5 }, { at: 7 }];

  const row = rowOf({ key: ["log", "1"], value: encodeJson(entries), versionstamp: "2" });
  assertEquals(row, { stamp: "1", at: 7, entries });
});

Deno.test("mergeLogs() has the latest time of a commit", () => {
  const logs = [5, 7].map((at) => [{ stamp: "1", at, entries: ["a"] }]);

  assertEquals(mergeLogs(logs, 9, "1").commits.map(({ at }) => at), [7]);
});

Deno.test("mergeLogs() misses nothing of logs that grow between their reads, up to a horizon that was read first", () => {
  const random = seededRandom(7);
  for (let run = 0; run < 200; run++) {
    const logs: string[][] = [[], []];
    let commits = 0;
    const grow = () => {
      for (let more = Math.floor(random() * 4); more > 0; more--) {
        const stamp = `${++commits}`.padStart(4, "0");
        const both = random() < 0.2;
        for (const [index, log] of logs.entries()) {
          if (both || index === commits % 2) log.push(stamp);
        }
      }
    };
    const seen: string[] = [];
    let [after, isLast] = ["", false];
    while (!isLast) {
      isLast = commits > 60;
      if (!isLast) grow();
      const horizon = `${commits}`.padStart(4, "0");
      const read = logs.map((log, index) => {
        if (!isLast) grow();
        return rowsOf(`${index} `, ...log.filter((stamp) => stamp > after).slice(0, 3));
      });
      const { commits: found, end } = mergeLogs(read, 3, horizon);
      seen.push(...found.flatMap(({ entries }) => entries));
      after = end;
      isLast &&= end === horizon;
    }
    const expected = logs.flatMap((log, index) => log.map((stamp) => `${index} ${stamp}`));
    assertEquals(seen, expected.sort((one, other) => one.slice(2) < other.slice(2) ? -1 : 1));
  }
});
