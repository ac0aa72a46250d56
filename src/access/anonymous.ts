import type { Decision } from "../accounts/decision.ts";
import { BoundedMap } from "../caching/bounded_map.ts";

const LIMIT = 60;
const MINUTE = 60_000;
const MAX_ADDRESSES = 10_000;

interface Count {
  /** Start of the minute, ms since the epoch. */
  readonly minute: number;
  readonly used: number;
}

/** Counts requests without a valid key by client address, 60 a minute, in this process's memory. */
export class AnonymousLimiter {
  readonly #counts: BoundedMap<string, Count> = new BoundedMap(MAX_ADDRESSES);

  /** Takes one of the address's places. */
  take(address: string, now: number): Decision {
    const { minute, used } = this.#current(address, now);
    if (used >= LIMIT) return decision(minute, used, now, "minute");
    this.#counts.set(address, { minute, used: used + 1 });
    return decision(minute, used + 1, now);
  }

  /** What the address has left, without taking any. */
  peek(address: string, now: number): Decision {
    const { minute, used } = this.#current(address, now);
    return decision(minute, used, now);
  }

  #current(address: string, now: number): Count {
    const minute = now - now % MINUTE;
    const count = this.#counts.get(address);
    // A clock that was set back does not open another minute.
    return count && count.minute >= minute && count.minute - minute < 5 * MINUTE
      ? count
      : { minute, used: 0 };
  }
}

function decision(minute: number, used: number, now: number, refusal?: "minute"): Decision {
  const window = { limit: LIMIT, remaining: LIMIT - used, reset: minute + MINUTE };
  return { refusal, minute: window, day: undefined, now };
}
