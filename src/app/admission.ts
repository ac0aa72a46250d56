import type { Account } from "../accounts/account.ts";
import type { AccountState } from "../accounts/account_store.ts";
import { type Decision, uncharged, type Usage } from "../limits/usage.ts";
import { whenReady } from "../base/when_ready.ts";
import { AGAIN, retried } from "../engine/deadline.ts";
import { VersionCheck, type VersionRow } from "../engine/versions.ts";
import { type AccountAllowance, ApiKeys, type ApiKeysOptions } from "../accounts/api_keys.ts";
import { AnonymousLimiter } from "../limits/anonymous.ts";
import type { Permit, Permits } from "../limits/permits.ts";

/** The properties of a request that determine how it is charged. */
export interface Caller {
  /** The request's Authorization header, if an account can be charged. */
  readonly authorization: string | null;
  readonly address: () => string;
  /** Time of arrival, in ms since the epoch. */
  readonly now: number;
  /** Time of arrival, on the `performance.now()` clock. */
  readonly arrived: number;
  /** Whether the request only reads. */
  readonly isRead: boolean;
}

/** The account and the limits of a charged request. */
export interface Admission {
  /** The account that was charged; undefined if the client address was. */
  readonly account: Account | undefined;
  readonly decision: Decision;
  /** Set if the address was charged because the account is suspended. */
  readonly isSuspended?: true;
  /** The permit for a write that was admitted from memory. A commit or a version check must confirm it. */
  readonly permit?: Permit;
}

/** AGAIN if the account has changed in the meantime. The request must then be admitted again. */
export type Charged = Admission | typeof AGAIN;

/** Options of a {@linkcode Gate}. */
export interface GateOptions extends ApiKeysOptions {
  readonly permits: Permits<Account>;
}

/**
 * Charges each request to the account of its API key. If the key is missing or invalid, or the account is suspended,
 * the client address is charged.
 */
export class Gate {
  readonly #keys: ApiKeys;
  readonly #permits: Permits<Account>;
  readonly #accounts: VersionRow;
  /** The check for the accounts' current version. */
  #unchanged: VersionCheck;
  readonly #anonymous: AnonymousLimiter = new AnonymousLimiter();
  /** Key lookups for spent addresses, by Authorization header. Requests with the same header share a lookup. */
  readonly #lookUps: Map<string, Promise<unknown>> = new Map();

  constructor(options: GateOptions) {
    this.#permits = options.permits;
    this.#keys = new ApiKeys(options, (accountId) => options.permits.activeOf(accountId));
    this.#accounts = options.accounts;
    this.#unchanged = new VersionCheck(options.accounts);
  }

  /**
   * Charges a request that has just arrived. It is charged to its address, provisionally to a lease, or to its account,
   * in a transaction or after the account has been read. Returns undefined if the versions must be checked first.
   *
   * @throws {StoreUnavailable}
   */
  admitAtOnce(caller: Caller): Admission | Promise<Charged> | undefined {
    const { authorization, now } = caller;
    if (authorization === null) return this.#chargeAddress(caller);
    const allowance = this.#keys.recall(authorization, now);
    if (allowance === undefined) {
      if (this.#keys.knows(authorization)) return undefined; // The key is no longer valid, or its account is suspended.
      return this.#keys.mayOpen(authorization)
        ? this.#lookUp(authorization, caller)
        : this.#chargeAddress(caller);
    }
    if (!this.#keys.isCurrent(allowance)) return this.admit(caller); // Reads the account, so no check is needed.
    const lent = caller.isRead ? undefined : this.#permits.lend(allowance, this.#check());
    if (lent) return { account: allowance.holder, ...lent };
    const isUndecided = this.#permits.needsTransaction(allowance);
    return isUndecided ? this.#chargeInTransaction(authorization, allowance, caller) : undefined;
  }

  /**
   * Charges a request. The versions must have been checked since it arrived, unless this call reads its account.
   *
   * @throws {StoreUnavailable}
   */
  admit(caller: Caller): Admission | Promise<Admission> {
    return whenReady(
      this.#charge(caller),
      (charged) => charged === AGAIN ? retried(async () => await this.#charge(caller)) : charged,
    );
  }

  /**
   * Charges a request again, because an account has changed since it arrived. Reads the request's account again,
   * because the one in memory might have been read before the request arrived.
   *
   * @throws {StoreUnavailable}
   */
  admitAgain(caller: Caller): Admission | Promise<Admission> {
    if (caller.authorization !== null) this.#keys.expire(caller.authorization);
    return this.admit(caller);
  }

  /** Takes back the charge of a request that was not served. Returns the limits without it. */
  uncharge({ account, decision }: Admission, address: () => string): Decision {
    if (account === undefined) {
      this.#anonymous.giveBack(address(), decision);
    } else {
      const allowance = this.#permits.activeOf(account.id) ?? this.#keys.allowanceOf(account.id);
      if (allowance) this.#permits.giveBack(allowance, decision);
    }
    return uncharged(decision);
  }

  /** An address's limits, without charging it. */
  peek(address: string, now: number): Decision {
    return this.#anonymous.peek(address, now);
  }

  /** An account's usage, without permits that this process holds. */
  usedBy(state: AccountState): Usage {
    const allowance = this.#keys.allowanceOf(state.account.id);
    return allowance?.usageWithoutLease(state.usage, state.usageRow, this.#permits.isRunning(allowance)) ??
      state.usage;
  }

  /** The check for the current version. Requests share it, so that they can share a commit. */
  #check(): VersionCheck {
    if (!this.#unchanged.holds) this.#unchanged = new VersionCheck(this.#accounts);
    return this.#unchanged;
  }

  #charge(caller: Caller): Charged | Promise<Charged> {
    const { authorization, now, arrived } = caller;
    if (authorization === null) return this.#chargeAddress(caller);
    return whenReady(this.#keys.find(authorization, now), (allowance) => {
      if (allowance === null) return this.#chargeAddress(caller);
      const { holder: account } = allowance;
      if (account.suspendedAt !== null) return { ...this.#chargeAddress(caller), isSuspended: true };
      const decision = this.#permits.decide(allowance, arrived);
      return decision ? { account, decision } : this.#chargeInTransaction(authorization, allowance, caller);
    });
  }

  #chargeInTransaction(
    authorization: string,
    allowance: AccountAllowance,
    { now, arrived }: Caller,
  ): Promise<Charged> {
    return this.#permits.request(allowance, { hash: this.#keys.hashOf(authorization), now, arrived })
      .then((decision) => decision === AGAIN ? AGAIN : { account: allowance.holder, decision });
  }

  #chargeAddress({ address, now }: Caller): Admission {
    return { account: undefined, decision: this.#anonymous.take(address(), now) };
  }

  /** Charges a request whose key is not in memory. A spent address has few reads, so its requests share one per key. */
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
