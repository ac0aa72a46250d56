import type { Account } from "../accounts/account.ts";
import type { AccountState } from "../accounts/account_store.ts";
import type { Decision, Usage } from "../accounts/usage.ts";
import { whenReady } from "../http/in_flight.ts";
import { AGAIN, retried } from "../kv/deadline.ts";
import { VersionCheck, type VersionRow } from "../store/versions.ts";
import type { Allowance } from "./allowance.ts";
import { AnonymousLimiter } from "./anonymous.ts";
import { ApiKeys, type ApiKeysOptions } from "./api_keys.ts";
import type { Permit, Permits } from "./permits.ts";

/** A request that is to be charged. */
export interface Caller {
  /** Its Authorization value, if it is charged to an account. */
  readonly authorization: string | null;
  readonly address: () => string;
  /** When it arrived, ms since the epoch. */
  readonly now: number;
  /** Whether it changes nothing. */
  readonly isRead: boolean;
}

/** Who called, and what the limits say of it. */
export interface Admission {
  /** The account whose key was charged; undefined where the client address was. */
  readonly account: Account | undefined;
  readonly decision: Decision;
  /** Given where the address was charged because the key's account is suspended. */
  readonly isSuspended?: true;
  /** Given to a write that a lease admitted: a commit or a check of the versions has to confirm it. */
  readonly permit?: Permit;
}

/** AGAIN where the account has changed meanwhile: the request is to be charged anew, after a check of the versions. */
export type Charged = Admission | typeof AGAIN;

/** What a gate stands on. */
export interface GateOptions extends ApiKeysOptions {
  readonly permits: Permits;
}

/**
 * Charges each request to the account whose API key it carries or, if it has no valid one or the account is suspended,
 * to its client address.
 */
export class Gate {
  readonly #keys: ApiKeys;
  readonly #permits: Permits;
  readonly #accounts: VersionRow;
  /** Holds while the accounts have the version that was seen last. */
  #unchanged: VersionCheck;
  readonly #anonymous: AnonymousLimiter = new AnonymousLimiter();
  /** Look-ups of keys for spent addresses that are on their way, by Authorization value: one read for all that send it. */
  readonly #lookUps: Map<string, Promise<unknown>> = new Map();

  constructor(options: GateOptions) {
    this.#permits = options.permits;
    this.#keys = new ApiKeys(options, (accountId) => options.permits.activeOf(accountId));
    this.#accounts = options.accounts;
    this.#unchanged = new VersionCheck(options.accounts);
  }

  /**
   * Charges a request that has just arrived, as far as that needs no check of the versions: by its address, by reads, by
   * a transaction, or provisionally by a lease. Undefined if the versions have to be checked first.
   *
   * @throws {StoreUnavailable}
   */
  admitAtOnce(caller: Caller): Admission | Promise<Charged> | undefined {
    const { authorization, now } = caller;
    if (authorization === null) return this.#chargeAddress(caller);
    const allowance = this.#keys.recall(authorization, now);
    if (allowance === undefined) {
      if (this.#keys.knows(authorization)) return undefined;
      return this.#keys.mayOpen(authorization)
        ? this.#lookUp(authorization, caller)
        : this.#chargeAddress(caller);
    }
    if (!this.#keys.isCurrent(allowance)) return this.admit(caller);
    const lent = caller.isRead ? undefined : this.#permits.lend(allowance, this.#check());
    if (lent) return { account: allowance.account, ...lent };
    const isUndecided = this.#permits.needsTransaction(allowance);
    return isUndecided ? this.#chargeInTransaction(authorization, allowance, now) : undefined;
  }

  /**
   * Charges a request, if the versions were checked since it arrived.
   *
   * @throws {StoreUnavailable}
   */
  admit(caller: Caller): Admission | Promise<Admission> {
    return whenReady(
      this.#charge(caller),
      (charged) => charged === AGAIN ? retried(async () => await this.#charge(caller)) : charged,
    );
  }

  /** What the address has left without a key; charges nothing. */
  peek(address: string, now: number): Decision {
    return this.#anonymous.peek(address, now);
  }

  /** What an account has used, without permits that this process holds. */
  usedBy(state: AccountState): Usage {
    const allowance = this.#keys.allowanceOf(state.account.id);
    return allowance?.usageWithoutLease(state, this.#permits.isRunning(allowance)) ?? state.usage;
  }

  /** The check that all share that are admitted under the same version, so that they can share a commit. */
  #check(): VersionCheck {
    if (!this.#unchanged.holds) this.#unchanged = new VersionCheck(this.#accounts);
    return this.#unchanged;
  }

  #charge(caller: Caller): Charged | Promise<Charged> {
    const { authorization, now } = caller;
    if (authorization === null) return this.#chargeAddress(caller);
    return whenReady(this.#keys.find(authorization, now), (allowance) => {
      if (allowance === null) return this.#chargeAddress(caller);
      const { account } = allowance;
      if (account.suspendedAt !== null) return { ...this.#chargeAddress(caller), isSuspended: true };
      const decision = this.#permits.decide(allowance);
      return decision ? { account, decision } : this.#chargeInTransaction(authorization, allowance, now);
    });
  }

  #chargeInTransaction(authorization: string, allowance: Allowance, now: number): Promise<Charged> {
    return this.#permits.request(allowance, { hash: this.#keys.hashOf(authorization), now })
      .then((decision) => decision === AGAIN ? AGAIN : { account: allowance.account, decision });
  }

  #chargeAddress({ address, now }: Caller): Admission {
    return { account: undefined, decision: this.#anonymous.take(address(), now) };
  }

  /** Charges a request with a key that is not in memory. Spent addresses have few reads, which requests share. */
  #lookUp(authorization: string, caller: Caller): Admission | Promise<Charged> {
    const { now } = caller;
    const address = caller.address();
    if (!this.#anonymous.isSpent(address, now)) return this.admit(caller);
    let lookUp = this.#lookUps.get(authorization);
    if (lookUp === undefined) {
      if (!this.#anonymous.takeRead(address, now)) return this.#chargeAddress(caller);
      lookUp = Promise.resolve(this.#keys.find(authorization, now))
        .finally(() => this.#lookUps.delete(authorization));
      this.#lookUps.set(authorization, lookUp);
    }
    return lookUp.then(() => this.#keys.knows(authorization) ? AGAIN : this.#chargeAddress(caller));
  }
}
