import { later, monotonicNow, type MonotonicTime, PAST, plus } from "../base/mod.ts";
import { type Holder, type HolderState, isLater } from "./holder.ts";
import type { Lease } from "./lease.ts";
import { type FullWindow, isSameLimits, roll, type Usage, windowEnd } from "./usage.ts";

/** After another process has written a row, it counts as shared for this long, in ms. */
const SHARED_FOR = 10_000;

/** What a process knows about a holder's rows. */
export interface Known<Of extends Holder> {
  readonly state: HolderState<Of>;
  /** When the rows were last seen; PAST if they must be read. */
  readonly seenAt: MonotonicTime;
  /** The rows had this state at this time or later. */
  readonly readAt: MonotonicTime;
  /** Until when the usage row counts as shared, because another process has written it. */
  readonly sharedUntil: MonotonicTime;
  /** When each window was first seen full. */
  readonly full: FirstFull;
}

type FirstFull = Readonly<Partial<Record<FullWindow, Full>>>;

/** A window that was full. */
interface Full {
  /** When it ends. */
  readonly end: number;
  /** When this process first saw it full. */
  readonly at: MonotonicTime;
}

/** What is known from the first reading of rows, at `at` or later. */
export function firstSeen<Of extends Holder>(state: HolderState<Of>, at: MonotonicTime): Known<Of> {
  const time = monotonicNow();
  return { state, seenAt: time, readAt: at, sharedUntil: PAST, full: fullIn(state, {}, time) };
}

/**
 * What is known after rows were read at `at` or later, or written by this process (`isOwn`). Later rows replace earlier
 * ones, never the other way round. If the usage row is a later one and not `isOwn`, another process has written it.
 */
export function seen<Of extends Holder>(
  known: Known<Of>,
  state: HolderState<Of>,
  at: MonotonicTime,
  isOwn: boolean,
): Known<Of> {
  const time = monotonicNow();
  const before = known.state;
  const isUsageLater = isLater(state.usageRow, before.usageRow);
  const { holder, holderRow } = isLater(state.holderRow, before.holderRow) ? state : before;
  const { usage, usageRow } = isUsageLater ? state : before;
  const after = { holder, holderRow, usage, usageRow };
  const isSameHolder = holderRow === before.holderRow && usage.epoch === before.usage.epoch;
  const isByOther = isUsageLater && !isOwn && known.seenAt > PAST;
  return {
    state: after,
    seenAt: time,
    readAt: later(at, known.readAt),
    sharedUntil: isByOther ? plus(time, SHARED_FOR) : known.sharedUntil,
    full: fullIn(after, isSameHolder ? known.full : {}, time),
  };
}

/**
 * Whether permits of a full window might still be given back at `time`: some are leased, and it is not yet `returnTime`
 * (ms) since this process first saw the window full.
 */
export function mayComeBack(
  { full }: Known<Holder>,
  usage: Usage,
  window: FullWindow,
  time: MonotonicTime,
  returnTime: number,
): boolean {
  if ((window === "day" ? usage.leasedToday : usage.leased) === 0) return false;
  const first = full[window];
  return first?.end !== windowEnd(usage, window) || time < plus(first.at, returnTime);
}

/** Whether a state is that of a changed or reset holder. Refusals from before the change do not count. */
export function isOfChanged(state: HolderState<Holder>, before: HolderState<Holder>): boolean {
  return isLater(state.holderRow, before.holderRow) || state.usage.epoch > before.usage.epoch;
}

/** Whether a lease has the limits, the epoch and the minute of a state, and the minute is current at `now`. */
export function isLeaseOf(lease: Lease, { usage, holder }: HolderState<Holder>, now: number): boolean {
  return lease.epoch === usage.epoch && lease.minute === usage.minute && roll(usage, now) === usage &&
    isSameLimits(lease.limits, holder.limits);
}

/** When each window was first seen full. If it is no longer full, it stays listed, so no request waits for it again. */
function fullIn(
  { usage, holder: { limits } }: HolderState<Holder>,
  before: FirstFull,
  time: MonotonicTime,
): FirstFull {
  const full = { ...before };
  const keepFirst = (window: FullWindow, isFull: boolean) => {
    const end = windowEnd(usage, window);
    if (isFull && full[window]?.end !== end) full[window] = { end, at: time };
  };
  keepFirst("minute", usage.used >= limits.minute);
  keepFirst("day", usage.usedToday >= limits.day);
  return full;
}
