import type { Account } from "../accounts/account.ts";
import type { AccountState } from "../accounts/account_state.ts";
import type { Decision } from "../accounts/decision.ts";
import type { Usage } from "../accounts/usage.ts";
import { VersionCheck, type VersionRow, type Versions } from "../store/versions.ts";
import { whenReady } from "../http/when_ready.ts";
import { AGAIN, retried } from "../kv/retried.ts";
import type { Leases } from "../leases/leases.ts";
import type { Quota } from "../leases/quota.ts";
import { AnonymousLimiter } from "./anonymous.ts";
import { Directory, type DirectoryOptions } from "./directory.ts";
import { Provisional } from "./provisional.ts";

/** Who called, and what the limits say of it. */
export interface Admission {
  /** The account whose key was charged; undefined where the client address was. */
  readonly account: Account | undefined;
  readonly decision: Decision;
  /** Given where the address was charged because the key's account is suspended. */
  readonly isSuspended?: true;
  /** Undefined where it is certain. */
  readonly provisional?: Provisional;
}

/** A request that is about to be charged. Where that takes a commit, it is on its way already. */
export interface PendingAdmission {
  /**
   * Resolves when what is in memory is true, for many at a time; undefined where nothing is waited for.
   *
   * @throws {StoreUnavailable}
   */
  readonly ready: Promise<void> | undefined;
  /**
   * Charges it, then: to its account or, without a valid key or with one of a suspended account, to its client
   * address.
   *
   * @throws {StoreUnavailable}
   */
  readonly admit: () => Admission | Promise<Admission>;
}

/** What a gate stands on. */
export interface GateOptions extends DirectoryOptions {
  readonly versions: Versions;
  readonly leases: Leases;
}

/** AGAIN where the account has changed meanwhile: for as long as it does, a request is charged again. */
type Charged = Admission | typeof AGAIN;

/**
 * Charges each request to the account whose API key it carries or, if it has no valid one or the account is suspended,
 * to its client address.
 */
export class Gate {
  readonly #versions: Versions;
  readonly #directory: Directory;
  readonly #leases: Leases;
  readonly #accounts: VersionRow;
  /** Holds while the accounts have the version that was seen last. */
  #unchanged: VersionCheck;
  readonly #anonymous: AnonymousLimiter = new AnonymousLimiter();
  /** Look-ups of keys for spent addresses that are on their way, by Authorization value. */
  readonly #lookUps: Map<string, Promise<void>> = new Map();

  constructor(options: GateOptions) {
    this.#versions = options.versions;
    this.#accounts = options.accounts;
    this.#unchanged = new VersionCheck(options.accounts);
    this.#directory = new Directory(options);
    this.#leases = options.leases;
  }

  /**
   * Starts what it takes to charge a request that arrived at `now`, with this Authorization value if any. One that
   * may be provisional is charged at once, without a look, where its account has a lease.
   */
  enter(
    authorization: string | null,
    address: () => string,
    now: number,
    mayBeProvisional: boolean,
  ): PendingAdmission {
    const byAddress = () => this.#admitAddress(address(), now);
    if (authorization === null) return { ready: undefined, admit: byAddress };
    const recalled = this.#directory.recall(authorization, now);
    if (!recalled && !this.#directory.mayOpen(authorization)) return { ready: undefined, admit: byAddress };
    if (!recalled && !this.#directory.knows(authorization) && this.#anonymous.isSpent(address(), now)) {
      const lookUp = this.#lookUpForSpent(authorization, address(), now);
      const enterKnown = () => this.enter(authorization, address, now, mayBeProvisional);
      const admitKnown = () => this.#directory.knows(authorization) ? admitted(enterKnown()) : byAddress();
      return { ready: undefined, admit: () => lookUp ? lookUp.then(admitKnown) : byAddress() };
    }
    const admission = mayBeProvisional && recalled ? this.#admitProvisionally(recalled) : undefined;
    if (admission) return { ready: undefined, admit: () => admission };
    const charge = () =>
      whenReady(this.#directory.find(authorization, now), (quota) => {
        if (quota === null) return byAddress();
        if (quota.account.suspendedAt !== null) return { ...byAddress(), isSuspended: true } as const;
        return this.#charge(quota);
      });
    // A commit checks for itself that nothing has changed: one that is needed travels beside the look.
    const early = recalled && this.#chargeInCommit(recalled);
    const ready = this.#versions.check();
    early?.catch(() => {}); // Nobody asks for it where the look fails.
    const admit = () =>
      whenReady(early ?? charge(), (charged) => {
        // No commit checks the account of who is refused for a ban: it may have been lifted.
        const isCertain = charged !== AGAIN && !(early && charged.decision.refusal === "ban");
        return isCertain ? charged : retried(async () => await charge());
      });
    return { ready, admit };
  }

  /** What the address has left without a key; charges nothing. */
  peek(address: string, now: number): Decision {
    return this.#anonymous.peek(address, now);
  }

  /** What an account has used, without places that this process has leased and not handed out. */
  usedBy({ account, usage, usageVersionstamp }: AccountState): Usage {
    const quota = this.#directory.quotaOf(account.id);
    if (!quota?.isKnown) return usage;
    // While a commit is on its way the row may tell of leases that are not held yet.
    const isNews = usageVersionstamp > quota.usageVersionstamp && !this.#leases.isBusy(quota);
    return quota.held.usageWithoutLeases(isNews ? usage : quota.usage);
  }

  /** Admits a request without a look, where its account has a lease. */
  #admitProvisionally(quota: Quota): Admission | undefined {
    const admitted = quota.accountsVersion === this.#accounts.version
      ? this.#leases.admitAtOnce(quota)
      : undefined;
    if (admitted === undefined) return undefined;
    // Those who are admitted under the same version share a check, so that they can share a commit.
    if (!this.#unchanged.holds) this.#unchanged = new VersionCheck(this.#accounts);
    const provisional = new Provisional(this.#unchanged, this.#versions, admitted);
    return { account: quota.account, decision: admitted.decision, provisional };
  }

  /**
   * Looks up a key that is not in memory for a spent address, once for all who send it meanwhile; undefined when the
   * address has no read left.
   */
  #lookUpForSpent(authorization: string, address: string, now: number): Promise<void> | undefined {
    const pending = this.#lookUps.get(authorization);
    if (pending || !this.#anonymous.takeRead(address, now)) return pending;
    const lookUp = this.#lookUp(authorization, now).finally(() => this.#lookUps.delete(authorization));
    this.#lookUps.set(authorization, lookUp);
    return lookUp;
  }

  async #lookUp(authorization: string, now: number): Promise<void> {
    await this.#versions.check();
    await this.#directory.find(authorization, now);
  }

  #admitAddress(address: string, now: number): Admission {
    return { account: undefined, decision: this.#anonymous.take(address, now) };
  }

  #charge(quota: Quota): Charged | Promise<Charged> {
    const { account } = quota;
    return whenReady(this.#leases.admit(quota), (decision) => chargedTo(account, decision));
  }

  /** Charges an account where that takes a commit; undefined where it does not. */
  #chargeInCommit(quota: Quota): Promise<Charged> | undefined {
    const { account } = quota;
    return this.#leases.admitInCommit(quota)?.then((decision) => chargedTo(account, decision));
  }
}

/** Charges a request that has just been entered. */
async function admitted({ ready, admit }: PendingAdmission): Promise<Admission> {
  await ready;
  return await admit();
}

function chargedTo(account: Account, decision: Decision | typeof AGAIN): Charged {
  return decision === AGAIN ? AGAIN : { account, decision };
}
