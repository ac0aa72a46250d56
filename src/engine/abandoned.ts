import { DAY } from "../base/mod.ts";
import type { Backend } from "./backend.ts";
import { decodeJson, type Entry } from "./row.ts";

/** How the keys of rows begin that belong to the backend: its markers, and the row of its probe. */
export const COMMITS = "commits";

/** Others remove a marker that is older than this, in ms. */
const ABANDONED_AFTER = DAY;
const PAGE = 500;

/**
 * Removes some of the markers that are over a day old: their processes were probably killed. Younger ones stay, because
 * another process might use them. `isOwn` recognizes markers of this process. Resolves to true if there may be more.
 */
export async function sweepMarkers(
  backend: Backend,
  now: number,
  isOwn: (marker: Entry) => boolean = () => false,
): Promise<boolean> {
  const isAbandoned = (marker: Entry) =>
    !isOwn(marker) && now - decodeJson<{ readonly at: number }>(marker).at > ABANDONED_AFTER;
  const abandoned: Entry[] = [];
  let page: readonly Entry[] = [];
  do {
    const start = [...page.at(-1)?.key ?? [COMMITS], ""];
    page = await backend.list({ start, end: [COMMITS, "~"] }, PAGE);
    abandoned.push(...page.filter(isAbandoned));
  } while (page.length === PAGE && abandoned.length < backend.maxChecks);
  abandoned.splice(backend.maxChecks);
  if (abandoned.length > 0) {
    await backend.commit((operation) => {
      for (const { key } of abandoned) operation.delete(key);
    }, abandoned);
  }
  return abandoned.length === backend.maxChecks;
}
