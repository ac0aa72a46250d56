import { monotonicNow, msBetween, SECOND } from "../base/mod.ts";
import type { Transactions } from "../engine/mod.ts";
import { bearerToken, isGone } from "../web/headers.ts";
import { allowOf, ApiError, createResponse, ERRORS, invalidRequest, readJsonObject } from "../web/mod.ts";
import { ACCESS, type Call, needsToken, type Operation, requireScope } from "../service/mod.ts";
import { invalidApiKey } from "../accounts/api_key.ts";
import { ACCOUNT_SUSPENDED, type Realm, SUSPENDED, unauthorizedIn } from "../accounts/bearer.ts";
import { READ_ONLY, wrongOperatorToken } from "../operator/token.ts";
import type { Admissions } from "./admission.ts";
import { type Arrival, createSuggester } from "./arrival.ts";
import type { Budget, InFlight } from "./in_flight.ts";
import { createRefusals } from "./limit_responses.ts";
import { hostFault } from "./target.ts";
import { WaitingPlaces } from "./waiting_places.ts";

/**
 * A step that may respond to an admitted request. If it returns undefined, the next one may.
 *
 * @throws {ApiError} if that is the response.
 */
export type Responding = (arrival: Arrival, budget: Budget) => Response | Promise<Response> | undefined;

/** Refuses a request that limits do not admit. */
export function refusing(): Responding {
  const refusedResponse = createRefusals();
  return function refuse(arrival: Arrival): Response | undefined {
    const { account, decision } = arrival.admission ?? {};
    if (!decision?.refusal) return undefined;
    arrival.limitOf = account ? "account" : "address";
    return refusedResponse(decision, decision.refusal);
  };
}

/** Refuses a request without the key or the token that its operation needs, or whose key does not allow it. */
export function authorizing(realm: Realm): Responding {
  const unauthorized = unauthorizedIn(realm);
  return function authorize({ request, matched, admission, byOperator }: Arrival): Response | undefined {
    if (matched.kind !== "found") return undefined;
    const { access, method } = matched.endpoint;
    if (byOperator?.grant.isReadOnly && method !== "GET") throw READ_ONLY;
    if (access === ACCESS.key && admission?.account === undefined) {
      return admission?.isSuspended ? SUSPENDED : unauthorized(request.headers.get("authorization"));
    }
    if (access === ACCESS.key && admission?.key !== "first") requireScope(matched.endpoint, admission?.key);
    if (!needsToken(access) || !admission) return undefined;
    return wrongOperatorToken(access, realm.realm, request.headers.get("authorization"));
  };
}

/** Options of {@linkcode handling}. */
export interface HandlingOptions {
  readonly admissions: Admissions;
  readonly transactions: Transactions;
  /** Whether the service runs on Deno Deploy, where chunked bodies may pause. */
  readonly onDeploy: boolean;
  /** The name of the service in challenges. */
  readonly realm: string;
  readonly inFlight: InFlight;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
}

/** A handler did not do its part. */
export class HandlerFault extends Error {
  override readonly name = "HandlerFault";

  /** The reason for the log. */
  get logReason(): string {
    return this.message;
  }
}

/** What a handler returned. @throws {HandlerFault} if it is no Response, whatever its type said. */
export function requireResponse(made: unknown): Response {
  if (made instanceof Response) return made;
  throw new HandlerFault("The handler returned no Response");
}

type ReadBody = Call["readBody"];

/** If a handler goes on longer than this after its request arrived, the account is checked again, in ms. */
const SLOW = SECOND;

/** Lets the operation of the request respond. */
export function handling(options: HandlingOptions): Responding {
  const { transactions, onDeploy, clock } = options;
  const usualRules = onDeploy ? { stallMs: Infinity } : {};
  const { readBody, idle } = createWaits(options);

  return function handle(arrival: Arrival, budget: Budget): Response | Promise<Response> | undefined {
    const { request, matched, base, query, now, address, admission } = arrival;
    if (matched.kind !== "found") return undefined;
    const { access } = matched.endpoint;
    const { account, key } = admission ?? {};
    const accountId = account?.id ?? "";
    arrival.isHandled = true;
    const made = matched.endpoint.respond({
      request,
      params: matched.params,
      query,
      base,
      now,
      accountId,
      collections: key === "first" ? undefined : key?.collections,
      acting: { by: needsToken(access) ? "operator" : "account", accountId, now },
      address,
      async transact(transaction) {
        const done = await transactions.run(transaction, () => budget.check());
        return done.result;
      },
      readBody: (rules) => arrival.body ??= readBody(arrival, { ...usualRules, ...rules }, budget),
      note: (id) => void arrival.byOperator?.ids.add(id),
      noteChange(changed) {
        if (arrival.byOperator) arrival.byOperator.changed = changed;
      },
      idle: (wait) => idle(arrival, wait, budget),
      clock,
    });
    return made instanceof Promise ? made : requireResponse(made);
  };
}

/** How handlers wait for a client, or for something to happen. Afterwards, the key is checked again. */
interface Waits {
  /** Reads the body. */
  readonly readBody: (
    arrival: Arrival,
    rules: Parameters<ReadBody>[0],
    budget: Budget,
  ) => ReturnType<ReadBody>;
  /** Waits without being in flight. */
  readonly idle: (arrival: Arrival, wait: Parameters<Call["idle"]>[0], budget: Budget) => Promise<boolean>;
}

function createWaits(
  { admissions, realm, inFlight, clock }: Pick<
    HandlingOptions,
    "admissions" | "realm" | "inFlight" | "clock"
  >,
): Waits {
  const places = new WaitingPlaces();

  return {
    async readBody(arrival, rules, budget) {
      const reading = budget.pausedFor(readJsonObject(arrival.request, rules, senderOf(arrival)));
      const body = await notCharged(arrival, reading);
      await requireValidKey(arrival, budget);
      return body;
    },
    async idle(arrival, wait, budget) {
      const began = monotonicNow();
      const waited = places.run(
        senderOf(arrival),
        arrival.request.signal,
        (signal) => inFlight.idle(budget, signal, wait),
      );
      const hasHappened = await notCharged(arrival, waited);
      arrival.idleMs += msBetween(began, budget.begun);
      await requireValidKey(arrival, budget);
      return hasHappened;
    },
  };

  /** The result of a request's work. If the service is too busy for that, the request is not charged. */
  function notCharged<Result>({ admission, address }: Arrival, work: Promise<Result>): Promise<Result> {
    return work.catch((error) => {
      const isOverloaded = error instanceof ApiError && error.kind === ERRORS.overloaded;
      if (admission && isOverloaded) admissions.giveBack(admission, address());
      throw error;
    });
  }

  /** Checks the account again if the request arrived some time ago. */
  async function requireValidKey({ request, at, admission }: Arrival, { begun }: Budget): Promise<void> {
    if (admission?.account === undefined || msBetween(at, begun) <= SLOW) return;
    const account = await admissions.find(bearerToken(request.headers.get("authorization")) ?? "", clock());
    if (account === undefined) throw invalidApiKey(realm);
    if (account.suspendedAt !== null) throw ACCOUNT_SUSPENDED;
  }
}

/** The sender that a request's body and its waits count for. Operators, who are not charged, count like an account. */
function senderOf({ admission }: Arrival): string {
  return admission ? admission.account?.id ?? "" : "operator";
}

/** Responds to a request that matches no operation. */
export function missing(
  operations: readonly Operation[],
  documentOf: (path: string) => string,
): (arrival: Arrival) => Response {
  const suggest = createSuggester(operations);
  return function miss({ request, now, path, matched }: Arrival): Response {
    if (matched.kind === "bad host") throw invalidRequest(hostFault(request), "Host");
    if (matched.kind === "allow") {
      const allow = allowOf(matched.endpoints.filter(({ deprecated }) => !isGone(deprecated, now)));
      if (request.method === "OPTIONS") return createResponse(null, { status: 204, headers: { allow } });
      throw new ApiError(ERRORS.method_not_allowed, `Allowed methods: ${allow}.`, { allow });
    }
    const meant = suggest(path);
    const hint = meant === undefined ? `See ${documentOf(path)}.` : `Did you mean ${meant}?`;
    throw new ApiError(ERRORS.not_found, `There is nothing at this path. ${hint}`);
  };
}
