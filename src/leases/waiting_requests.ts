import type { Decision } from "../accounts/decision.ts";
import type { Refusal } from "../accounts/usage.ts";
import { AGAIN } from "../kv/retried.ts";

interface WaitingRequest extends Omit<PromiseWithResolvers<Decision | typeof AGAIN>, "promise"> {
  /** Version of the accounts that its key was recognized under. */
  readonly accountsVersion: string;
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

  /** Resolves to what the next commit decides on a request that was recognized under this version of the accounts. */
  wait(accountsVersion: string): Promise<Decision | typeof AGAIN> {
    return new Promise((resolve, reject) => this.#waiting.push({ resolve, reject, accountsVersion }));
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

  /** Has them decided on anew, but for those recognized under this version of the accounts, if one is given. */
  turnAway(version?: string): void {
    const waiting = this.#waiting;
    this.#waiting = waiting.filter(({ accountsVersion }) => accountsVersion === version);
    for (const { accountsVersion, resolve } of waiting) if (accountsVersion !== version) resolve(AGAIN);
  }

  /** Fails them. */
  fail(error: unknown): void {
    for (const { reject } of this.#waiting.splice(0)) reject(error);
  }
}
