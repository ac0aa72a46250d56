import type { Caller, Charged, Gate } from "./admission/gate.ts";
import { withLimitHeaders } from "./admission/limit_headers.ts";
import type { Permit } from "./admission/permits.ts";
import { BASE_PATH } from "./api/openapi.ts";
import type { Operation } from "./api/operation.ts";
import {
  type Arrival,
  type ArrivalsOptions,
  type ConnectionInfo,
  createArrivals,
  hasLimits,
  isForOperator,
} from "./arrival.ts";
import { BODY_RULES, readJsonObject } from "./http/body.ts";
import { setCorsHeaders } from "./http/cors.ts";

import { ApiError, errorResponse, INTERNAL, OVERLOADED, STOPPING, UNAVAILABLE } from "./http/error.ts";
import { type Budget, type InFlight, OutOfTime, whenReady } from "./http/in_flight.ts";
import { errorRecord, type Log } from "./http/log.ts";
import { ownOf } from "./http/response.ts";
import { StoreUnavailable } from "./kv/deadline.ts";
import { AGAIN } from "./kv/retried.ts";
import type { Metrics } from "./metrics/metrics.ts";
import { countAdmission, record } from "./record.ts";
import { createResponder, type ResponderOptions } from "./respond.ts";
import type { Transactions } from "./store/transactions.ts";
import { Outdated, type VersionCheck, type Versions } from "./store/versions.ts";

/** What is done with requests. */
export interface AppOptions extends ArrivalsOptions, ResponderOptions {
  /** Admits requests. */
  readonly gate: Gate;
  readonly versions: Versions;
  /** Carries out what handlers write. */
  readonly transactions: Transactions;
  /** Whether an Authorization value is the operator's. */
  readonly isOperator: (authorization: string | null) => boolean;
  /** Whether HTTP/1.1 bodies may come in chunks. */
  readonly chunkedBodies: boolean;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly inFlight: InFlight;
}

/** Answers a request; never throws or rejects. */
export type App = (request: Request, info: ConnectionInfo) => Response | Promise<Response>;

/** How a request is charged that no operation answers. */
const MISS: Pick<Operation, "access" | "method"> = { access: "key", method: "GET" };

/** The whole service as a function of a request: the request path, top to bottom. */
export function createApp(options: AppOptions): App {
  const { gate, versions, transactions, isOperator, log, metrics, inFlight } = options;
  const arrive = createArrivals(options);
  const respond = createResponder(options);
  const bodyRules = { ...BODY_RULES, chunked: options.chunkedBodies };
  const description = `<${options.publicUrl ?? ""}${BASE_PATH}/openapi.json>; rel="service-desc"`;

  return function fetch(request: Request, info: ConnectionInfo): Response | Promise<Response> {
    const arrival = arrive(request, info);
    const done = (response: Response) => finish(arrival, response);
    const fail = (error: unknown) => done(errorResponse(asApiError(error, arrival)));
    if (inFlight.isStopping) return done(errorResponse(STOPPING));
    if (inFlight.isFull) return done(errorResponse(OVERLOADED));
    try {
      const caller = callerOf(arrival);
      const early = caller && gate.admitAtOnce(caller);
      // Every request finds out whether what memory holds is true, but for those whose commits do.
      const isUnsure = caller && (early === undefined || (caller.isRead && early instanceof Promise));
      const ready = isUnsure ? versions.check() : undefined;
      if (early instanceof Promise) early.catch(() => {}); // It is not asked for if the check fails.
      const work = (budget: Budget) => {
        if (caller === undefined) return responseTo(arrival, budget);
        return whenReady(early ?? gate.admit(caller), (charged) => answer(arrival, caller, charged, budget));
      };
      const late = (error: unknown) => void asApiError(error, arrival); // For its line in the log.
      return inFlight.answer({ started: arrival.started, ready, work, finish: done, fail, late });
    } catch (error) {
      return fail(error);
    }
  };

  /** How a request is charged; undefined if nobody is. */
  function callerOf(arrival: Arrival): Caller | undefined {
    const { request, matched, now, address } = arrival;
    const { access, method } = matched.kind === "found" ? matched.endpoint : MISS;
    if (access === "public" || request.method === "OPTIONS") return undefined;
    const authorization = request.headers.get("authorization");
    if (access === "operator" && isOperator(authorization)) return undefined;
    if (matched.kind !== "found" && !hasLimits(arrival)) return undefined;
    return { authorization: access === "key" ? authorization : null, address, now, isRead: method === "GET" };
  }

  function answer(
    arrival: Arrival,
    caller: Caller,
    charged: Charged,
    budget: Budget,
  ): Response | Promise<Response> {
    if (charged === AGAIN) return answerAgain(arrival, caller, budget);
    arrival.admission = charged;
    if (charged.permit) return answerAssuming(charged.permit, arrival, caller, budget);
    countAdmission(charged, metrics);
    return responseTo(arrival, budget);
  }

  /** Answers a request whose account has changed since it arrived. */
  async function answerAgain(arrival: Arrival, caller: Caller, budget: Budget): Promise<Response> {
    await versions.check();
    budget.check();
    return await answer(arrival, caller, await gate.admit(caller), budget);
  }

  /** Answers a request that was admitted by what memory knows; anew if an account has changed since. */
  async function answerAssuming(
    permit: Permit,
    arrival: Arrival,
    caller: Caller,
    budget: Budget,
  ): Promise<Response> {
    const { admission, started } = arrival;
    try {
      const response = await refusable(() => responseTo(arrival, budget, permit.check));
      await versions.confirm(permit.check, started);
      permit.confirm();
      if (admission) countAdmission(admission, metrics);
      return response;
    } catch (error) {
      if (error instanceof Outdated && !budget.isOver) {
        permit.withdraw();
        return await answer(arrival, caller, await gate.admit(caller), budget);
      }
      permit.confirm(); // It is not known what the request has left behind.
      if (admission) countAdmission(admission, metrics);
      throw error;
    }
  }

  function responseTo(
    arrival: Arrival,
    budget: Budget,
    assumption?: VersionCheck,
  ): Response | Promise<Response> {
    let assumes = assumption;
    return respond(arrival, {
      async transact(transaction) {
        const done = await transactions.run(transaction, { assumes, mayBegin: () => budget.check() });
        // Called again because of a later one, the handler would do this one twice.
        if (done.committed) assumes = undefined;
        return done.result;
      },
      readBody: (rules) =>
        arrival.body ??= budget.pausedFor(readJsonObject(arrival.request, { ...bodyRules, ...rules })),
    });
  }

  function finish(arrival: Arrival, made: Response): Response {
    const { request, id, now, matched, address, admission } = arrival;
    // Refusals have them already, and so have responses that tell of a limit of their own.
    const isLimited = hasLimits(arrival) && !made.headers.has("x-ratelimit-limit");
    const decision = isLimited ? admission?.decision ?? gate.peek(address(), now) : undefined;
    const response = decision ? withLimitHeaders(made, decision) : ownOf(made);
    const { headers } = response;
    if (response.status === 404) headers.append("link", description); // RFC 8631
    headers.set("x-request-id", id);
    if (request.headers.get("origin") !== null && !isForOperator(matched)) setCorsHeaders(request, headers);
    record(arrival, response, log, metrics);
    return response;
  }

  /** What a client sees of what was thrown. Only an ApiError speaks for itself; the rest is logged. */
  function asApiError(error: unknown, { id, now, matched }: Arrival): ApiError {
    if (error instanceof ApiError) return error;
    if (error instanceof OutOfTime || error instanceof Outdated) {
      return inFlight.isStopping ? STOPPING : UNAVAILABLE;
    }
    log.error(errorRecord(error, now, matched.pattern, id));
    return error instanceof StoreUnavailable ? UNAVAILABLE : INTERNAL;
  }
}

/** What a handler answers, or refuses with. */
async function refusable(handle: () => Response | Promise<Response>): Promise<Response> {
  try {
    return await handle();
  } catch (error) {
    if (error instanceof ApiError) return errorResponse(error);
    throw error;
  }
}
