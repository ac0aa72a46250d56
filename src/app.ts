import type { Admission, Gate, PendingAdmission } from "./access/gate.ts";
import { withLimitHeaders } from "./access/limit_headers.ts";
import type { Provisional } from "./access/provisional.ts";
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
import { type Budget, type InFlight, OutOfTime } from "./http/in_flight.ts";
import { errorRecord, type Log } from "./http/log.ts";
import { ownOf } from "./http/response.ts";
import { whenReady } from "./http/when_ready.ts";
import { StoreUnavailable } from "./kv/deadline.ts";
import type { Metrics } from "./metrics/metrics.ts";
import { countAdmission, record } from "./record.ts";
import { createResponder, type ResponderOptions } from "./respond.ts";
import type { Transactions } from "./store/transactions.ts";
import { Outdated } from "./store/versions.ts";

/** What is done with requests. */
export interface AppOptions extends ArrivalsOptions, ResponderOptions {
  /** Admits requests. */
  readonly gate: Gate;
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
  const { gate, transactions, isOperator, log, metrics, inFlight } = options;
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
      const pending = enter(arrival, true);
      const work = (budget: Budget) => answer(arrival, pending, budget);
      const late = (error: unknown) => void asApiError(error, arrival); // For its line in the log.
      const { started } = arrival;
      return inFlight.answer({ started, ready: pending?.ready, work, finish: done, fail, late });
    } catch (error) {
      return fail(error);
    }
  };

  function answer(
    arrival: Arrival,
    pending: PendingAdmission | undefined,
    budget: Budget,
  ): Response | Promise<Response> {
    return whenReady(pending?.admit(), (admission) => {
      arrival.admission = admission;
      if (admission?.provisional) {
        return answerProvisionally(arrival, admission, admission.provisional, budget);
      }
      if (admission) countAdmission(admission, metrics);
      return responseTo(arrival, budget);
    });
  }

  /** Answers a request that was admitted provisionally; anew, after a look, if an account has changed. */
  async function answerProvisionally(
    arrival: Arrival,
    admission: Admission,
    provisional: Provisional,
    budget: Budget,
  ): Promise<Response> {
    try {
      const response = await provisional.confirmed(() => responseTo(arrival, budget), arrival.started);
      provisional.place.keep();
      countAdmission(admission, metrics);
      return response;
    } catch (error) {
      if (!(error instanceof Outdated) || budget.isOver) {
        provisional.place.keep();
        countAdmission(admission, metrics);
        throw error;
      }
      provisional.place.takeBack();
      const pending = enter(arrival, false);
      await pending?.ready;
      return await answer(arrival, pending, budget);
    }
  }

  /** Begins to charge for a request; undefined where nobody is charged. */
  function enter(arrival: Arrival, mayBeProvisional: boolean): PendingAdmission | undefined {
    const { request, matched, now, address } = arrival;
    const { access, method } = matched.kind === "found" ? matched.endpoint : MISS;
    if (access === "public" || request.method === "OPTIONS") return undefined;
    const authorization = request.headers.get("authorization");
    if (access === "operator" && isOperator(authorization)) return undefined;
    if (matched.kind !== "found" && !hasLimits(arrival)) return undefined;
    const key = access === "key" ? authorization : null;
    return gate.enter(key, address, now, mayBeProvisional && method !== "GET");
  }

  function responseTo(arrival: Arrival, budget: Budget): Response | Promise<Response> {
    let assumes = arrival.admission?.provisional?.check;
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
