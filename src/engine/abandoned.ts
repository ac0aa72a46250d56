import { DAY } from "../base/mod.ts";
import type { Backend } from "./backend.ts";
import { decodeJson, type Entry } from "./row.ts";

/** How the keys of rows begin that belong to the backend: its markers, and the row of its probe. */
export const MARKERS = "commits";

/** Others remove a marker that is older than this, in ms. */
const ABANDONED_AFTER = DAY;
/** Maximum number of markers that one call looks at. */
const MAX_MARKERS = 5_000;

/**
 * Removes some of the markers that are over a day old: their processes were probably killed. Younger ones stay, because
 * another process might use them. `isOwn` recognizes markers of this process. Resolves to true if there may be more.
 */
export async function sweepMarkers(
  backend: Backend,
  now: number,
  isOwn: (marker: Entry) => boolean = () => false,
): Promise<boolean> {
  const markers = await backend.list({ start: [MARKERS, ""], end: [MARKERS, "~"] }, MAX_MARKERS);
  const isAbandoned = (marker: Entry) =>
    !isOwn(marker) && now - decodeJson<{ readonly at: number }>(marker).at > ABANDONED_AFTER;
  const abandoned = markers.filter(isAbandoned).slice(0, backend.maxChecks);
  if (abandoned.length === 0) return false;
  const { ok } = await backend.commit((operation) => {
    for (const { key } of abandoned) operation.delete(key);
  }, abandoned);
  return !ok || abandoned.length === backend.maxChecks;
}
