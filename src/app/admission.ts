import { type Metrics, whenReady } from "../base/mod.ts";
import { AGAIN, Outdated, retried, VersionCheck, type VersionRow, type Versions } from "../engine/mod.ts";
import { ApiError, type Budget, errorResponse, ERRORS, type InFlightRequest } from "../web/mod.ts";
import {
  type Allowance,
  AnonymousLimiter,
  type Decision,
  type Permit,
  type Permits,
  uncharged,
} from "../limits/mod.ts";
import type { Account } from "../accounts/account.ts";
import { ApiKeys, type ApiKeysOptions } from "../accounts/api_keys.ts";

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
  /** The decision on the request. If the permit becomes free again, this is the decision without the charge. */
  decision: Decision;
  /** Set if the address was charged because the account is suspended. */
  readonly isSuspended?: true;
  /** Set if the request was admitted from memory without a version check. Its first commit must include this one. */
  readonly assumes?: VersionCheck;
}

/** Responds to a charged request. It is called again if an account has changed since the request was admitted. */
export type Serve = (admission: Admission, budget: Budget) => Response | Promise<Response>;

/** An admission, and the permit of a request that was admitted without a version check. */
interface Lent extends Admission {
  readonly permit?: Permit;
}

/** The result of an attempt to charge a request. AGAIN means that nothing was charged: the request is admitted again. */
type Charged = Lent | typeof AGAIN;

/** An admission that is under way. */
type Begun = Pick<InFlightRequest<Response, Response>, "ready" | "work">;

/** Options of {@linkcode Admissions}. */
export interface AdmissionsOptions extends ApiKeysOptions {
  readonly versions: Versions;
  readonly metrics: Metrics;
}

/**
 * Charges each request to the account of its API key. If the key is missing or invalid, or the account is suspended,
 * the client address is charged.
 *
 * An admission is certain if the account had the state that decided on it at some time after the request arrived. It
 * ends when the request has its response. A read stays charged. So does a write, unless an account has changed or the
 * service is too busy. The cases:
 *
 *     case               decided by           certain because                               if it is not charged
 *     client address     #anonymous.take()    a process counts its addresses alone          #anonymous.giveBack()
 *     account not read   allowance.decide()   its rows are read after the request arrived   allowance.giveBack()
 *     lent permit        allowance.lend()     a commit or a version check confirms it       permit.end(false)
 *     transaction        allowance.request()  it checks the account's row                   allowance.giveBack()
 *     memory             allowance.decide()   a version check finds no change               allowance.giveBack()
 *
 * Only a write with a lent permit is served before its admission is certain. Its first commit checks the accounts'
 * version. If it commits nothing, the version is checked before the response is sent.
 */
export class Admissions {
  readonly #keys: ApiKeys;
  readonly #permits: Permits<Account>;
  readonly #versions: Versions;
  readonly #accounts: VersionRow;
  readonly #metrics: Metrics;
  /** The check for the accounts' current version. */
  #unchanged: VersionCheck;
  readonly #anonymous: AnonymousLimiter = new AnonymousLimiter();
  /** Key lookups for spent addresses, by Authorization header. Requests with the same header share a lookup. */
  readonly #lookUps: Map<string, Promise<unknown>> = new Map();

  constructor(options: AdmissionsOptions) {
    this.#permits = options.permits;
    this.#versions = options.versions;
    this.#accounts = options.accounts;
    this.#metrics = options.metrics;
    this.#keys = new ApiKeys(options);
    this.#unchanged = new VersionCheck(options.accounts);
  }

  /**
   * Begins to admit a request and, if necessary, to check the versions. When `ready` has resolved, `work` serves the
   * request. The cases are in the order in which they are tried.
   *
   * @throws {StoreUnavailable}
   */
  begin(caller: Caller, serve: Serve): Begun {
    const { authorization, now, isRead } = caller;

    // No key: the address is charged.
    if (authorization === null) return this.#begun(this.#chargeAddress(caller), caller, serve);

    // The key is not in memory, or an account has changed: they are read. What is read now is certain.
    const allowance = this.#keys.recall(authorization);
    if (allowance === undefined) {
      const charged = this.#keys.knows(authorization)
        ? this.#chargeAccount(caller)
        : this.#lookUp(authorization, caller);
      return this.#begun(charged, caller, serve);
    }

    if (this.#keys.opens(allowance, authorization, now)) {
      // The lease lends a permit to a write. Its first commit, or a version check, confirms that no account has changed.
      // If one has, the request is admitted again.
      const permit = isRead ? undefined : allowance.lend();
      if (permit) {
        const { decision } = permit;
        return this.#begun(
          { account: allowance.holder, decision, assumes: this.#assumption(), permit },
          caller,
          serve,
        );
      }

      // Only a transaction can decide. It checks that the account has not changed.
      if (allowance.needsTransaction()) {
        return this.#begun(this.#chargeInTransaction(authorization, allowance, caller), caller, serve);
      }
    }

    // Memory decides: a leased permit for a read, or a refusal. First, a version check shows that it is current.
    const ready = this.#versions.check();
    return {
      ready,
      work: (budget) =>
        whenReady(this.#chargeAccount(caller), (charged) => this.#serve(charged, caller, budget, serve)),
    };
  }

  /** The limits of a request that is not charged: those of its account if that is in memory, else of its address. */
  peek({ headers }: Request, address: () => string, now: number): Decision {
    const authorization = headers.get("authorization");
    const ofAccount = authorization === null ? undefined : this.#keys.peek(authorization, now);
    return ofAccount ?? this.#anonymous.peek(address(), now);
  }

  /**
   * An admission whose charge is made or under way. A read also waits for a version check, because its response has
   * content from memory.
   */
  #begun(charged: Charged | Promise<Charged>, caller: Caller, serve: Serve): Begun {
    const isUnderWay = charged instanceof Promise;
    if (isUnderWay) charged.catch(() => {}); // If the check fails, this is not awaited.
    return {
      ready: isUnderWay && caller.isRead ? this.#versions.check() : undefined,
      work: (budget) => whenReady(charged, (done) => this.#serve(done, caller, budget, serve)),
    };
  }

  #serve(charged: Charged, caller: Caller, budget: Budget, serve: Serve): Response | Promise<Response> {
    if (charged === AGAIN) return this.#admitAgain(caller, budget, serve);
    const { account, decision } = charged;
    if (account && decision.refusal && !budget.isOver) this.#permits.of(account.id)?.tell(decision);
    if (!caller.isRead) return this.#serveWrite(charged, caller, budget, serve);
    this.#count(charged);
    return serve(charged, budget);
  }

  /** Serves a write. It is not charged if an account has changed, or if the service is too busy. */
  async #serveWrite(admission: Lent, caller: Caller, budget: Budget, serve: Serve): Promise<Response> {
    const { assumes } = admission;
    try {
      const response = await withRefusals(() => serve(admission, budget));
      if (assumes) await this.#versions.confirm(assumes, caller.arrived);
      this.#end(admission, caller, true);
      return response;
    } catch (error) {
      const isOutdated = error instanceof Outdated && !budget.isOver;
      // Any other failure stays charged, because the handler may have written something.
      this.#end(admission, caller, !isOutdated && !isOverloaded(error));
      if (!isOutdated) throw error;
      if (caller.authorization !== null) this.#keys.expire(caller.authorization);
      return await this.#admitAgain(caller, budget, serve);
    }
  }

  /** Admits a request again, because an account has changed, or because the lease has permits now. */
  async #admitAgain(caller: Caller, budget: Budget, serve: Serve): Promise<Response> {
    budget.check();
    // The versions have been checked since the read arrived.
    if (caller.isRead) return await this.#serve(await this.#chargeAccount(caller), caller, budget, serve);
    const { ready, work } = this.begin(caller, serve);
    await ready;
    return await work(budget);
  }

  /**
   * Charges the account of a request's key, from memory if possible. The versions must have been checked since the
   * request arrived, unless this call reads the account.
   */
  #chargeAccount(caller: Caller): Admission | Promise<Admission> {
    return whenReady(
      this.#tryToChargeAccount(caller),
      (charged) => charged === AGAIN ? retried(async () => await this.#tryToChargeAccount(caller)) : charged,
    );
  }

  #tryToChargeAccount(caller: Caller): Admission | typeof AGAIN | Promise<Admission | typeof AGAIN> {
    const { authorization, now, arrived } = caller;
    if (authorization === null) return this.#chargeAddress(caller);
    return whenReady(this.#keys.find(authorization, now), (allowance) => {
      if (allowance === null) return this.#chargeAddress(caller);
      const { holder: account } = allowance;
      if (account.suspendedAt !== null) return { ...this.#chargeAddress(caller), isSuspended: true };
      const decision = allowance.decide(arrived);
      return decision ? { account, decision } : this.#chargeInTransaction(authorization, allowance, caller);
    });
  }

  /** Charges an account in the allowance's next run, which other requests share. */
  async #chargeInTransaction(
    authorization: string,
    allowance: Allowance<Account>,
    { now, arrived }: Caller,
  ): Promise<Admission | typeof AGAIN> {
    const decision = await allowance.request({ credential: this.#keys.hashOf(authorization), now, arrived });
    return decision === AGAIN ? AGAIN : { account: allowance.holder, decision };
  }

  #chargeAddress({ address, now }: Caller): Admission {
    return { account: undefined, decision: this.#anonymous.take(address(), now) };
  }

  /** Charges a request whose key is not in memory. A spent address has few reads, so its requests share one per key. */
  #lookUp(authorization: string, caller: Caller): Admission | Promise<Charged> {
    if (!this.#keys.mayOpen(authorization)) return this.#chargeAddress(caller);
    const { now } = caller;
    const address = caller.address();
    if (!this.#anonymous.isSpent(address, now)) return this.#chargeAccount(caller);
    let lookUp = this.#lookUps.get(authorization);
    if (lookUp === undefined) {
      if (!this.#anonymous.takeRead(address, now)) return this.#chargeAddress(caller);
      lookUp = Promise.resolve(this.#keys.find(authorization, now))
        .finally(() => this.#lookUps.delete(authorization));
      this.#lookUps.set(authorization, lookUp);
    }
    return lookUp.then(() => this.#keys.knows(authorization) ? AGAIN : this.#chargeAddress(caller));
  }

  /** Ends a write's admission. If its permit was not used, it becomes free again. */
  #end(admission: Lent, { address }: Caller, isUsed: boolean): void {
    const { account, decision, permit } = admission;
    if (isUsed) this.#count(admission);
    if (permit) permit.end(isUsed);
    if (isUsed || decision.refusal !== undefined) return;
    if (account === undefined) this.#anonymous.giveBack(address(), decision);
    else if (permit === undefined) this.#permits.of(account.id)?.giveBack(decision);
    admission.decision = uncharged(decision);
  }

  #count({ account, decision: { refusal } }: Admission): void {
    const plan = account?.plan ?? "";
    if (refusal === undefined) this.#metrics.admitted.add(1, plan);
    else this.#metrics.refused.add(1, plan, refusal);
  }

  /** The check for the current version. Requests share it, so that they can share a commit. */
  #assumption(): VersionCheck {
    if (!this.#unchanged.holds) this.#unchanged = new VersionCheck(this.#accounts);
    return this.#unchanged;
  }
}

/** Turns a handler's ApiError into a response, except `overloaded`: such a request is not charged. */
async function withRefusals(handle: () => Response | Promise<Response>): Promise<Response> {
  try {
    return await handle();
  } catch (error) {
    if (error instanceof ApiError && !isOverloaded(error)) return errorResponse(error);
    throw error;
  }
}

function isOverloaded(error: unknown): boolean {
  return error instanceof ApiError && error.kind === ERRORS.overloaded;
}
