import type { Decision } from "../accounts/decision.ts";
import type { Refusal } from "../accounts/usage.ts";
import { AGAIN } from "../kv/retried.ts";

interface WaitingRequest extends Omit<PromiseWithResolvers<Decision | typeof AGAIN>, "promise"> {
  /** Version of the account's row that its key was recognized under. */
  readonly versionstamp: string;
}

/**
 * Requests that wait for what a commit decides, first come, first served; or AGAIN, where their account, or what is
 * leased of it, has changed.
 */
export class WaitingRequests {
  #waiting: WaitingRequest[] = [];

  /** How many there are. */
  get count(): number {
    return this.#waiting.length;
  }

  /** Resolves to what the next commit decides on a request that was recognized under this version of its account. */
  wait(versionstamp: string): Promise<Decision | typeof AGAIN> {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject, versionstamp }));
  }

  /** Admits the first `granted`, who leave `left` places behind them, and refuses the next. */
  answer(
    granted: number,
    left: number,
    refusals: readonly Refusal[],
    decision: (refusal: Refusal | undefined, left: number) => Decision,
  ): void {
    this.#waiting.splice(0, granted).forEach(({ resolve }, index) =>
      resolve(decision(undefined, left + granted - 1 - index))
    );
    this.#waiting.splice(0, refusals.length).forEach(({ resolve }, index) =>
      resolve(decision(refusals[index], 0))
    );
  }

  /** Has them decided on anew, but for those recognized under this version of their account, if one is given. */
  turnAway(current?: string): void {
    const waiting = this.#waiting;
    this.#waiting = waiting.filter(({ versionstamp }) => versionstamp === current);
    for (const { versionstamp, resolve } of waiting) if (versionstamp !== current) resolve(AGAIN);
  }

  /** Fails them. */
  fail(error: unknown): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}
