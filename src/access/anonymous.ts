import { BoundedMap } from "../kv/bounded_map.ts";
import { PLAN_LIMITS } from "./plans.ts";
import { roll, take, UNUSED, type Usage, type Verdict } from "./usage.ts";

const LIMITS = { minute: PLAN_LIMITS.free.minute, day: Infinity };
const MAX_ADDRESSES = 10_000;

/** Counts requests without a valid key by client address, in this process's memory. */
export class AnonymousLimiter {
  readonly #usages: BoundedMap<string, Usage> = new BoundedMap(MAX_ADDRESSES);

  /** Takes one of the address's 60 requests a minute. */
  take(address: string, now: number): Verdict {
    const verdict = take(this.#usages.get(address) ?? UNUSED, LIMITS, now);
    this.#usages.set(address, verdict.usage);
    return verdict;
  }

  /** What the address has left, without taking any. */
  peek(address: string, now: number): Verdict {
    const usage = roll(this.#usages.get(address) ?? UNUSED, now);
    return { refusal: undefined, usage, limits: LIMITS, now };
  }
}
