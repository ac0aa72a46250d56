import { BoundedMap, MINUTE, SECOND } from "../base/mod.ts";
import type { Decision } from "./usage.ts";

/** Requests a minute from an address without a valid key. */
export const ANONYMOUS_LIMIT = 60;
/** Further look-ups of keys, in each second of a minute, for a spent address: one that has used its requests. */
export const SPENT_LOOK_UPS = 5;
/** If the clock is set back by less than this, the current minute continues. */
const MAX_AHEAD = 5 * MINUTE;
const MAX_ADDRESSES = 20_000;

interface Count {
  /** Start of the minute. */
  readonly minute: number;
  readonly used: number;
  /** Number of look-ups that were allowed although the address was spent. */
  readonly lookUps: number;
}

/** Counts requests without a valid key by client address and minute, in the memory of this process. */
export class AnonymousLimiter {
  readonly #counts: BoundedMap<string, Count> = new BoundedMap(MAX_ADDRESSES);

  /** Counts a request, or refuses it if the address is spent. */
  take(address: string, now: number): Decision {
    const before = this.#countOf(address, now);
    if (before.used >= ANONYMOUS_LIMIT) return decision(before, now, "minute");
    const count = { ...before, used: before.used + 1 };
    this.#counts.set(address, count);
    return decision(count, now);
  }

  /** Takes back the count of a request with this decision. */
  giveBack(address: string, { refusal, minute: { reset } }: Decision): void {
    const count = this.#counts.get(address);
    if (refusal || count === undefined || count.minute + MINUTE !== reset || count.used === 0) return;
    this.#counts.set(address, { ...count, used: count.used - 1 });
  }

  /** Takes one of a spent address's look-ups; false if none is left in this second. Unused ones stay for later. */
  takeLookUp(address: string, now: number): boolean {
    const count = this.#countOf(address, now);
    const seconds = Math.floor(Math.max(0, now - count.minute) / SECOND) + 1;
    if (count.lookUps >= SPENT_LOOK_UPS * seconds) return false;
    this.#counts.set(address, { ...count, lookUps: count.lookUps + 1 });
    return true;
  }

  /** An address's limits, without counting a request. */
  peek(address: string, now: number): Decision {
    return decision(this.#countOf(address, now), now);
  }

  #countOf(address: string, now: number): Count {
    const minute = now - now % MINUTE;
    const count = this.#counts.get(address);
    const isCurrent = count && count.minute >= minute && count.minute - minute < MAX_AHEAD;
    return isCurrent ? count : { minute, used: 0, lookUps: 0 };
  }
}

function decision({ minute, used }: Count, now: number, refusal?: "minute"): Decision {
  const window = { limit: ANONYMOUS_LIMIT, remaining: ANONYMOUS_LIMIT - used, reset: minute + MINUTE };
  return { refusal, minute: window, day: undefined, epoch: 0, now };
}
