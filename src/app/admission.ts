import { BoundedMap, HOUR, monotonicNow, type MonotonicTime, whenReady } from "../base/mod.ts";
import { AGAIN, retried, type Versions } from "../engine/mod.ts";
import { bearerToken } from "../web/headers.ts";
import { AnonymousLimiter, type Decision, type Permits, uncharged, UNDECIDED } from "../limits/mod.ts";
import type { Account, HourCount, ValidKey } from "../accounts/account.ts";
import { ApiKeys, type ApiKeysOptions, type Opened, type OwnedKey } from "../accounts/api_keys.ts";
import type { Budget } from "./in_flight.ts";

/** The properties of a request that determine how it is charged. */
export interface Caller {
  /** The request's bearer token, if an account can be charged. */
  readonly key: string | undefined;
  readonly address: () => string;
  /** Time of arrival. */
  readonly now: number;
  /** The same time, for deadlines. */
  readonly at: MonotonicTime;
  /** Whether the request only reads. */
  readonly isRead: boolean;
  /** ID of its operation, if an account can use that although its limits refuse it, and how often in an hour. */
  readonly spared: { readonly operation: string; readonly perHour: number } | undefined;
  /** Whether it is served although limits refuse it; undefined if that is not decided yet. */
  isSpared?: boolean | undefined;
  /** The key with its account, once this process knows it. */
  owned?: OwnedKey | undefined;
  /** The charge that needed no version check, once `begin()` was called. */
  early?: Charged | Promise<Charged>;
  /** Set if the version check has failed, so that the request is not charged any more. */
  hasFailed?: true;
}

/** The account and the limits of a charged request. */
export interface Admission {
  /** The account that was charged; undefined if the client address was. */
  readonly account: Account | undefined;
  /** The key of the request, as the account that was charged had it; undefined if the client address was. */
  readonly key?: ValidKey;
  /** The decision on the request. If the permit becomes free again, this is the decision without the charge. */
  decision: Decision;
  /** Set if the address was charged because the account is suspended. */
  readonly isSuspended?: true;
  /** Set if nothing is charged: limits refuse the request, which is served nevertheless, or the charge was given back. */
  isFree?: true;
}

/** Nothing was charged: try again after the check. */
const NOT_CHARGED: unique symbol = Symbol("not charged");

/** The result of an attempt to charge a request. */
type Charged = Admission | typeof NOT_CHARGED;

/** Options of {@linkcode Admissions}. */
export interface AdmissionsOptions extends ApiKeysOptions {
  readonly versions: Versions;
}

const MAX_SPARED = 10_000;

/**
 * Charges each request to the account of its API key. If the key is missing or invalid, or the account is suspended,
 * the client address is charged. An admission is certain: the account had the state that decided on it at some time
 * after the request arrived. The cases:
 *
 *     case               decided by                      certain because
 *     client address     #addresses.take()               a process counts its addresses alone
 *     account not read   allowance.decideFromMemory()    its rows are read after the request arrived
 *     transaction        allowance.decideInRun()         it checks the account's row
 *     memory             allowance.decideFromMemory()    a version check finds no change
 */
export class Admissions {
  readonly #keys: ApiKeys;
  readonly #permits: Permits<Account>;
  readonly #versions: Versions;
  readonly #addresses: AnonymousLimiter = new AnonymousLimiter();
  /** Resolves when all look-ups of keys for an address have ended, by address. */
  readonly #lookUps: Map<string, Promise<unknown>> = new Map();
  /** Number of requests of an account in an hour that may be spared, by operation and account ID. */
  readonly #spared: BoundedMap<string, HourCount> = new BoundedMap(MAX_SPARED);

  constructor(options: AdmissionsOptions) {
    this.#permits = options.permits;
    this.#versions = options.versions;
    this.#keys = new ApiKeys(options);
  }

  /**
   * Begins to admit a request. The promise is that of a check of the versions: when it has resolved, call `admit()`.
   *
   * @throws {StoreUnavailable}
   */
  begin(caller: Caller): Promise<void> | undefined {
    const early = caller.early = this.#chargeEarly(caller);
    const isUnderWay = early instanceof Promise;
    if (early !== NOT_CHARGED && !isUnderWay) return undefined;
    // A read may be as stale as the service allows, but a write is never based on stale accounts.
    const ready = this.#versions.check(caller.isRead ? undefined : 0);
    if (isUnderWay) {
      early.catch(() => {}); // If the check fails, this is not awaited.
      ready?.catch(() => caller.hasFailed = true);
    }
    return ready;
  }

  /** Admits a request, after `begin()`. */
  admit(caller: Caller, budget: Budget): Admission | Promise<Admission> {
    const { early = NOT_CHARGED } = caller;
    if (early === NOT_CHARGED) return this.#charge(caller, budget, budget.begun);
    return whenReady(
      early,
      (charged) => charged === NOT_CHARGED ? this.#charge(caller, budget, monotonicNow()) : charged,
    );
  }

  /** Charges a request if that needs no version check. NOT_CHARGED means that memory decides after the check. */
  #chargeEarly(caller: Caller): Charged | Promise<Charged> {
    const { key, now } = caller;
    const owned = caller.owned = key === undefined ? undefined : this.#keys.known(key);
    const allowance = owned && this.#keys.recall(owned);
    // The key is not in memory, or an account has changed: they are read. What is read now is certain.
    if (!allowance) return this.#tryToCharge(caller, caller.at);
    const opened = allowance.outlook(caller) === undefined ? this.#keys.open(allowance, owned, now) : null;
    const needsRun = opened !== null && allowance.holder.suspendedAt === null;
    return needsRun ? this.#chargeInRun(owned, opened, caller) : NOT_CHARGED;
  }

  /** Charges a request at `at`, which is now, from memory if possible. The versions must have been checked since it arrived. */
  #charge(caller: Caller, budget: Budget, at: MonotonicTime): Admission | Promise<Admission> {
    budget.check();
    const charged = this.#tryToCharge(caller, at);
    if (charged !== NOT_CHARGED && !(charged instanceof Promise)) return charged;
    const again = async () => {
      budget.check();
      const charged = await this.#tryToCharge(caller);
      return charged === NOT_CHARGED ? AGAIN : charged;
    };
    return whenReady(charged, (charged) => charged === NOT_CHARGED ? retried(again) : charged);
  }

  /** Tries to charge a request at `at`, which is now. */
  #tryToCharge(caller: Caller, at: MonotonicTime = monotonicNow()): Charged | Promise<Charged> {
    const { key, now } = caller;
    if (key === undefined) return this.#chargeAddress(caller);
    const owned = caller.owned ??= this.#keys.known(key);
    if (owned === undefined) return this.#identify(key, caller);
    const opened = this.#keys.find(owned, now);
    return opened instanceof Promise
      ? opened.then((opened) => this.#chargeOpened(caller, owned, opened, monotonicNow()))
      : this.#chargeOpened(caller, owned, opened, at);
  }

  #chargeOpened(
    caller: Caller,
    owned: OwnedKey,
    opened: Opened | null,
    at: MonotonicTime,
  ): Charged | Promise<Charged> {
    if (opened === null) return this.#chargeAddress(caller);
    const { allowance, valid } = opened;
    const { holder: account } = allowance;
    if (account.suspendedAt !== null) return { ...this.#chargeAddress(caller), isSuspended: true };
    this.#spare(caller, opened);
    const decision = allowance.decideFromMemory(caller, at);
    return decision
      ? admissionOf(account, valid, decision, caller)
      : this.#chargeInRun(owned, opened, caller);
  }

  #chargeAddress({ address, now }: Caller): Admission {
    return { account: undefined, decision: this.#addresses.take(address(), now) };
  }

  /**
   * Looks up a key that is not in memory. Its address is charged until its account is found. A spent address has a few
   * further look-ups. If it has none left, the request waits for those that are under way.
   */
  #identify(key: string, caller: Caller): Charged | Promise<Charged> {
    const charged = this.#chargeAddress(caller);
    if (!this.#keys.isWellFormed(key)) return charged;
    const address = caller.address();
    const underWay = this.#lookUps.get(address);
    if (charged.decision.refusal && !this.#addresses.takeLookUp(address, caller.now)) {
      return underWay?.then(() => NOT_CHARGED) ?? charged;
    }
    const lookUp = this.#lookUp(key, address, charged);
    const allEnded = Promise.allSettled([underWay, lookUp]).then(() => {
      if (this.#lookUps.get(address) === allEnded) this.#lookUps.delete(address);
    });
    this.#lookUps.set(address, allEnded);
    return lookUp;
  }

  async #lookUp(key: string, address: string, charged: Admission): Promise<Charged> {
    let isUnknown = false;
    try {
      isUnknown = !await this.#keys.identify(key);
      return isUnknown ? charged : NOT_CHARGED;
    } finally {
      if (!isUnknown) this.#addresses.giveBack(address, charged.decision);
    }
  }

  /** Charges an account in the allowance's next run, which other requests share. */
  async #chargeInRun({ hash }: OwnedKey, opened: Opened, caller: Caller): Promise<Charged> {
    const { allowance, valid } = opened;
    this.#spare(caller, opened);
    const { now, at, isSpared } = caller;
    const isAwaited = () => !caller.hasFailed;
    const decision = await allowance.decideInRun({ credential: hash, now, at, isSpared, isAwaited });
    // What a key allows never changes. The account, as it is now, might not have the key any more.
    return decision === UNDECIDED ? NOT_CHARGED : admissionOf(allowance.holder, valid, decision, caller);
  }

  /**
   * Decides whether limits may refuse a request of an account's first key. It is counted before its body is read. Added
   * keys are neither spared nor counted, so that one that has leaked cannot use up what the first key needs.
   */
  #spare(caller: Caller, { allowance: { holder }, valid }: Opened): void {
    const { spared, now } = caller;
    if (!spared || caller.isSpared !== undefined || valid !== "first") return;
    const name = `${spared.operation} ${holder.id}`;
    const hour = Math.floor(now / HOUR);
    const before = this.#spared.get(name);
    const count = before?.hour === hour ? before.count : 0;
    caller.isSpared = count < spared.perHour;
    this.#spared.set(name, { hour, count: count + 1 });
  }

  /** Takes back the charge of a request that the service is too busy to serve. */
  giveBack(admission: Admission, address: string): void {
    const { account, decision } = admission;
    if (admission.isFree) return;
    admission.isFree = true;
    if (account) this.#permits.of(account.id)?.giveBack(decision);
    else this.#addresses.giveBack(address, decision);
    admission.decision = uncharged(decision);
  }

  /** The account that a key opens at `now`, read after this call if any account has changed. */
  async find(key: string, now: number): Promise<Account | undefined> {
    await this.#versions.check(0);
    if (this.#keys.known(key) === undefined) await this.#keys.identify(key);
    const owned = this.#keys.known(key);
    return owned && (await this.#keys.find(owned, now))?.allowance.holder;
  }

  /** The limits of a request that is not charged: those of its account if that is in memory, else of its address. */
  peek({ headers }: Request, address: () => string, now: number): Decision {
    const key = bearerToken(headers.get("authorization"));
    const ofAccount = key === undefined ? undefined : this.#keys.peek(key, now);
    return ofAccount ?? this.#addresses.peek(address(), now);
  }

  /** The ID of the account of a request's key, valid or not, if this process knows it; otherwise empty. */
  ownerOf({ headers }: Request): string {
    return this.#keys.known(bearerToken(headers.get("authorization")) ?? "")?.accountId ?? "";
  }
}

/** The admission of a request of an account. */
function admissionOf(
  account: Account,
  key: ValidKey,
  decision: Decision,
  { isSpared }: Caller,
): Admission {
  if (!isSpared || decision.refusal === undefined) return { account, key, decision };
  return { account, key, decision: { ...decision, refusal: undefined }, isFree: true };
}
