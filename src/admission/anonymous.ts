import type { Decision } from "../accounts/usage.ts";
import { BoundedMap } from "../store/cache.ts";

/** Limit of requests per minute and address without a valid key. */
export const LIMIT = 60;
const MINUTE = 60_000;
/** Maximum lookups of keys per second for a spent address. */
export const READS = 5;
const SECOND = 1_000;
const MAX_ADDRESSES = 10_000;

interface Count {
  /** Start of the minute, in ms since the epoch. */
  readonly minute: number;
  readonly used: number;
  /** Start of the second of its last read while spent, in ms since the epoch. */
  readonly second: number;
  /** Number of reads in that second. */
  readonly reads: number;
}

/** Counts requests without a valid key by client address and minute, in this process's memory. */
export class AnonymousLimiter {
  readonly #counts: BoundedMap<string, Count> = new BoundedMap(MAX_ADDRESSES);

  /** Counts a request, or refuses it if the address is spent. */
  take(address: string, now: number): Decision {
    const count = this.#current(address, now);
    const { minute, used } = count;
    if (used >= LIMIT) return decision(minute, used, now, "minute");
    this.#counts.set(address, { ...count, used: used + 1 });
    return decision(minute, used + 1, now);
  }

  /** Whether the address has used all its requests of the minute. */
  isSpent(address: string, now: number): boolean {
    return this.#current(address, now).used >= LIMIT;
  }

  /** Takes one of the reads of a spent address; false if none is left in this second. */
  takeRead(address: string, now: number): boolean {
    const count = this.#current(address, now);
    const second = now - now % SECOND;
    const reads = count.second === second ? count.reads : 0;
    if (reads >= READS) return false;
    this.#counts.set(address, { ...count, second, reads: reads + 1 });
    return true;
  }

  /** The limits of an address, without counting a request. */
  peek(address: string, now: number): Decision {
    const { minute, used } = this.#current(address, now);
    return decision(minute, used, now);
  }

  #current(address: string, now: number): Count {
    const minute = now - now % MINUTE;
    const count = this.#counts.get(address);
    // A clock that was set back does not start a new minute.
    return count && count.minute >= minute && count.minute - minute < 5 * MINUTE
      ? count
      : { minute, used: 0, second: minute, reads: 0 };
  }
}

function decision(minute: number, used: number, now: number, refusal?: "minute"): Decision {
  const window = { limit: LIMIT, remaining: LIMIT - used, reset: minute + MINUTE };
  return { refusal, minute: window, day: undefined, now };
}
