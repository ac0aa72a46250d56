import { constantReply, type Contender, RIVALS, SERVICE, start } from "./contenders.ts";
import { type Effort, type Entry, takeTurns } from "./measure.ts";
import { figure, ratio, table } from "./report.ts";
import { ONE_PAGE, type Work } from "./works.ts";

/** A table of requests per second; in brackets, this service as a multiple. */
export async function comparison(
  works: readonly Work[],
  checkouts: readonly Contender[],
  effort: Effort,
): Promise<string> {
  const rows: string[][] = [];
  let names: string[] = [];
  for (const work of works) {
    await using cleanup = new AsyncDisposableStack();
    const service = await start(SERVICE, cleanup, work.caller);
    const entries: Entry[] = [{ name: SERVICE.name, target: service, work }];
    const constant = await constantReply(service, work);
    for (const contender of [...checkouts, constant, ...RIVALS]) {
      const target = await start(
        contender,
        cleanup,
        work.caller,
        contender === constant ? 0 : ONE_PAGE,
      );
      entries.push({ name: contender.name, target, work });
    }
    const results = await takeTurns(entries, effort, "perSecond");
    names = results.map(([name]) => name);
    const [own = NaN, ...others] = results.map(([, perSecond]) => perSecond);
    rows.push([
      work.name,
      figure(own),
      ...others.map((rate) => `${figure(rate)} (${ratio(own, rate)})`),
    ]);
  }
  return table(["", ...names], rows);
}
