import { encodeCursor } from "../../../src/pets/cursor.ts";
import type { Effort } from "../comparison.ts";
import { median } from "../median.ts";
import { figure, ratio, table } from "../report.ts";
import { startService } from "../service.ts";
import { Session } from "../session.ts";
import type { Target } from "../target.ts";
import { note } from "../terminal.ts";
import { WORKS } from "../works.ts";
import { measure } from "../wrk.ts";
import { seedCatalogue } from "./large_catalogue.ts";

/** A page, or many, asked of a catalogue of some size. */
interface Series {
  readonly page: string;
  readonly paths: readonly string[];
  readonly size: number;
  readonly service: Target;
  readonly latencies: number[];
}

const PATH = WORKS.list.path;
const PAGE_SIZE = 20;
const SCATTERED_PAGES = 1_000;
const SMALLEST = 100;
const CONNECTIONS = 64;
const WARM_UP_SECONDS = 1;

/** How the latency of a list depends on the catalogue: with a thousandth of `largest`, a tenth, all. */
export async function pageLatencyReport(
  largest: number,
  { rounds, seconds }: Effort,
  signal: AbortSignal,
): Promise<string> {
  await using session = new Session(signal);
  const sizes = [largest / 1000, largest / 10, largest].map((size) => Math.max(Math.ceil(size), SMALLEST));
  const all: Series[] = [];
  for (const size of sizes) {
    const service = await startService(session, { seed: (path) => seedCatalogue(path, size, signal) });
    for (const [page, paths] of pagesOf(size)) all.push({ page, paths, size, service, latencies: [] });
  }
  const byPage = [...Map.groupBy(all, ({ page }) => page)];
  for (let round = 0; round <= rounds; round++) {
    for (const series of byPage.flatMap(([, series]) => series)) {
      const latency = await measureOne(series, round === 0 ? WARM_UP_SECONDS : seconds, signal);
      if (round > 0) series.latencies.push(latency);
    }
  }
  return [
    `Median latency of a list in ms by the number of animals, ${CONNECTIONS} connections, ${rounds} rounds.`,
    `In brackets: as a multiple of that with ${figure(sizes[0] ?? NaN)} animals.`,
    "",
    table(["", ...sizes.map((size) => `${figure(size)} animals`)], [
      ...byPage.map(([page, series]) => row(page, series.map(({ latencies }) => median(latencies)))),
    ]),
  ].join("\n");
}

/** What the service keeps of recent pages helps with every page but those of the last kind. */
function pagesOf(size: number): ReadonlyMap<string, readonly string[]> {
  const after = (id: number): string => `${PATH}&cursor=${encodeCursor(id)}`;
  const lastStart = Math.max(size - PAGE_SIZE, 1);
  const scattered = Array.from(
    { length: SCATTERED_PAGES },
    (_, turn) => after(Math.ceil((turn + 1) / SCATTERED_PAGES * lastStart)),
  );
  return new Map([
    ["first page", [PATH]],
    ["last page", [after(lastStart)]],
    ["rare status", [`${PATH}&status=sold`]],
    [`${figure(SCATTERED_PAGES)} pages in turn`, scattered],
  ]);
}

async function measureOne(series: Series, seconds: number, signal: AbortSignal): Promise<number> {
  const { page, paths, size, service: { server: { origin }, callers } } = series;
  const keys = callers.ample.slice(0, 1);
  const traffic = { origin, method: "GET", paths, body: "", keys, connections: CONNECTIONS, seconds };
  const { p50, failures, broken } = await measure(traffic, signal);
  if (failures + broken > 0) throw new Error(`${page} of ${size} animals: ${failures + broken} failures`);
  note(`${size} animals, ${page}: ${figure(p50)} ms`);
  return p50;
}

function row(name: string, values: readonly number[]): string[] {
  const [base = NaN, ...rest] = values;
  return [name, figure(base), ...rest.map((value) => `${figure(value)} (${ratio(value, base)})`)];
}
