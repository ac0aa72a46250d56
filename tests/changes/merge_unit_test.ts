import { assertEquals } from "@std/assert";
import { type LogRow, mergeLogs, type Piece } from "../../src/changes/merge.ts";
import { seededRandom } from "../support/time.ts";

/** Rows of a log with these stamps. The entry of each names its log, too. */
function rowsOf(log: string, ...stamps: readonly string[]): LogRow<string>[] {
  return stamps.map((stamp, index) => ({ stamp, at: index, entries: [`${log}${stamp}`] }));
}

/** A piece with all rows that a log has. */
function whole(log: string, ...stamps: readonly string[]): Piece<string> {
  return { rows: rowsOf(log, ...stamps), isCut: false };
}

/** What a merge has, in order, and its end. */
function entriesIn({ commits, end }: ReturnType<typeof mergeLogs<string>>): [entries: string, end: string] {
  return [commits.map(({ entries }) => entries.join("+")).join(" "), end];
}

Deno.test.each<[what: string, pieces: readonly Piece<string>[], expected: [entries: string, end: string]]>([
  ["nothing", [whole("a"), whole("b")], ["", "5"]],
  ["rows in the order of their stamps", [whole("a", "2", "5"), whole("b", "1", "3")], ["b1 a2 b3 a5", "5"]],
  ["the rows of a commit together", [whole("a", "2", "4"), whole("b", "1", "4")], ["b1 a2 a4+b4", "5"]],
  ["nothing after the horizon", [whole("a", "5", "6"), whole("b", "7")], ["a5", "5"]],
  [
    "nothing after the end of a log that was cut",
    [{ ...whole("a", "1", "2"), isCut: true }, whole("b", "2", "3", "4")],
    ["a1 a2+b2", "2"],
  ],
  [
    "nothing after the first end of two logs that were cut",
    [{ ...whole("a", "1", "4"), isCut: true }, { ...whole("b", "2", "3"), isCut: true }],
    ["a1 b2 b3", "3"],
  ],
])("mergeLogs() has %s", (_, pieces, expected) => {
  assertEquals(entriesIn(mergeLogs(pieces, "5")), expected);
});

Deno.test("mergeLogs() has the latest time of a commit", () => {
  const rows = [5, 7].map((at) => ({ rows: [{ stamp: "1", at, entries: ["a"] }], isCut: false }));

  assertEquals(mergeLogs(rows, "1").commits.map(({ at }) => at), [7]);
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
      const pieces = logs.map((log, index) => {
        if (!isLast) grow();
        const rows = rowsOf(`${index} `, ...log.filter((stamp) => stamp > after));
        return { rows: rows.slice(0, 3), isCut: rows.length > 3 };
      });
      const { commits: found, end } = mergeLogs(pieces, horizon);
      seen.push(...found.flatMap(({ entries }) => entries));
      after = end;
      isLast &&= end === horizon;
    }
    const expected = logs.flatMap((log, index) => log.map((stamp) => `${index} ${stamp}`));
    assertEquals(seen, expected.sort((one, other) => one.slice(2) < other.slice(2) ? -1 : 1));
  }
});
