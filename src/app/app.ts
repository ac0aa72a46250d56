import { monotonicNow } from "../base/mod.ts";
import { StoreUnavailable } from "../engine/mod.ts";
import { type AllowedOrigins, bearerToken } from "../web/headers.ts";
import {
  type Access,
  ApiError,
  apiErrorOf,
  type ErrorKind,
  errorResponse,
  ERRORS,
  INTERNAL,
} from "../web/mod.ts";
import {
  ACCESS,
  BASE_PATH,
  needsToken,
  type Operation,
  STOPPING,
  UNAVAILABLE,
  UsedUp,
} from "../service/mod.ts";
import type { Realm } from "../accounts/bearer.ts";
import type { FindGrant } from "../operator/token.ts";
import type { Admission, Caller } from "./admission.ts";
import {
  authorizing,
  handling,
  type HandlingOptions,
  missing,
  refusing,
  requireResponse,
  type Responding,
} from "./responding.ts";
import { type Arrival, type ArrivalsOptions, type ConnectionInfo, createArrivals } from "./arrival.ts";
import {
  addDeprecation,
  addRequestId,
  closing,
  describing,
  type Finishing,
  limiting,
  sharing,
} from "./finishing.ts";
import { type Budget, type InFlight, OutOfTime, type Schedule, type Serving } from "./in_flight.ts";
import { type ErrorRecord, errorRecord } from "./log.ts";
import { record, type RecordOptions } from "./record.ts";
import type { WrongTokens } from "./wrong_tokens.ts";

/** Options of {@linkcode createApp}. */
export interface AppOptions extends ArrivalsOptions, HandlingOptions, RecordOptions, Realm {
  /** The tokens that are valid for operations with this access. */
  readonly grants: ReadonlyMap<Access, FindGrant>;
  readonly wrongTokens: WrongTokens;
  readonly inFlight: InFlight;
  /** The origins whose web pages may read responses to clients. */
  readonly allowedOrigins: AllowedOrigins;
}

/** Responds to a request. Never throws or rejects. */
export type App = (request: Request, info: ConnectionInfo) => Response | Promise<Response>;

/** The end of a document's path. The beginning is that of the operations in the document. */
const DOCUMENT = "/openapi.json";
const OVERLOADED = new ApiError(ERRORS.overloaded, "Too many requests are in flight. Try again shortly.", {
  "retry-after": "1",
});
/** How a request that matches no operation is served. */
const ANY: Pick<Schedule, "isForMonitoring" | "timeoutMs"> = {};
/** How it is charged. */
const MISS: Pick<Operation, "access" | "method"> = { access: ACCESS.key, method: "GET" };

/**
 * Returns the whole service as a function of a request. A request passes these steps in order:
 *
 *     arrive       matches the route
 *     work         charges it, after a version check if memory must be current (`admission.ts`)
 *     responding   the first of these to return a response decides
 *     finishing    each of these adds headers
 *     record       at the end, writes metrics and the access log
 */
export function createApp(options: AppOptions): App {
  const { admissions, inFlight } = options;
  const arrive = createArrivals(options);
  const serving = createServing(options);

  return function fetch(request: Request, info: ConnectionInfo): Response | Promise<Response> {
    const arrival = arrive(request, info);
    const { at, matched } = arrival;
    const { isForMonitoring = false, timeoutMs } = matched.kind === "found" ? matched.endpoint : ANY;
    if (inFlight.isStopping && !isForMonitoring) {
      inFlight.restartQuiet();
      return respond(arrival, errorResponse(STOPPING));
    }
    if (inFlight.isFull(isForMonitoring)) return respond(arrival, errorResponse(OVERLOADED));
    try {
      const caller = arrival.caller = callerOf(arrival, options);
      const ready = caller && admissions.begin(caller);
      return inFlight.run(arrival, serving, { at, timeoutMs, isForMonitoring, ready });
    } catch (error) {
      return respond(arrival, serving.failed(arrival, error));
    }
  };

  function respond(arrival: Arrival, made: Response): Response {
    const response = serving.finish(arrival, made);
    serving.ended(arrival, monotonicNow());
    return response;
  }
}

/** The steps of a request that has arrived. They are the same for all requests, because closures for each cost time. */
function createServing(options: AppOptions): Serving<Arrival> {
  const { operations, publicUrl, allowedOrigins, admissions, realm, environment, keys, inFlight } = options;
  const documentOf = documentsOf(operations);
  const responding: readonly Responding[] = [
    refusing(),
    authorizing({ realm, environment, keys }),
    handling(options),
  ];
  const miss = missing(operations, documentOf);
  const limit = limiting(admissions);
  const finishing: readonly Finishing[] = [
    addDeprecation,
    describing(documentOf, publicUrl),
    closing(inFlight),
    addRequestId,
    sharing(allowedOrigins),
  ];

  function respond(arrival: Arrival, admission: Admission | undefined, budget: Budget) {
    arrival.admission = admission;
    for (const step of responding) {
      const response = step(arrival, budget);
      if (response) return response;
    }
    return miss(arrival);
  }

  return {
    work(arrival, budget) {
      const admission = arrival.caller && admissions.admit(arrival.caller, budget);
      return admission instanceof Promise
        ? admission.then((admission) => respond(arrival, admission, budget))
        : respond(arrival, admission, budget);
    },
    failed(arrival, error) {
      if (error instanceof UsedUp) arrival.limitOf = error.limitOf;
      return errorResponse(asApiError(error, arrival, options));
    },
    finish(arrival, made) {
      const response = limit(arrival, requireResponse(made));
      for (const step of finishing) step(arrival, response);
      arrival.made = made;
      return response;
    },
    ended(arrival, at) {
      if (arrival.made) record(arrival, { made: arrival.made, ended: at }, options);
    },
  };
}

/** Returns a function for the path of the document with the operations below a path: clients' or operators'. */
function documentsOf(operations: readonly Operation[]): (path: string) => string {
  const documents = operations.map(({ path }) => path).filter((path) => path.endsWith(DOCUMENT));
  return (path) =>
    documents.find((document) => path.startsWith(document.slice(0, -DOCUMENT.length))) ??
      BASE_PATH + DOCUMENT;
}

/** What the request is charged to, or undefined if it is free. */
function callerOf(
  arrival: Arrival,
  { grants, wrongTokens }: Pick<AppOptions, "grants" | "wrongTokens">,
): Caller | undefined {
  const { request, matched, now, at, address } = arrival;
  const { access, method } = matched.kind === "found" ? matched.endpoint : MISS;
  if (access === ACCESS.public || request.method === "OPTIONS") return undefined;
  const authorization = request.headers.get("authorization");
  const grant = grants.get(access)?.(authorization);
  if (grant) {
    if (matched.kind === "found" && access === ACCESS.operator) {
      arrival.byOperator = { grant, operation: matched.endpoint.id, ids: new Set(), changed: {} };
    }
    return undefined;
  }
  if (needsToken(access) && authorization !== null) wrongTokens.count(address());
  if (matched.kind !== "found" && !arrival.hasLimits) return undefined;
  const isRead = method === "GET";
  const { id: operation = "", sparedPerHour: perHour } = matched.kind === "found" ? matched.endpoint : {};
  const key = access === ACCESS.key ? bearerToken(authorization) : undefined;
  const spared = perHour === undefined ? undefined : { operation, perHour };
  return { key, address, now, at, isRead, spared };
}

/** Errors of 5xx with which the service refuses a request. They are counted, and not logged. */
const REFUSALS: ReadonlySet<ErrorKind> = new Set([OVERLOADED.kind, STOPPING.kind]);

/** The error that the client receives. Anything other than an ApiError stays internal. A failure of the service is logged. */
function asApiError(
  error: unknown,
  { id, now, matched, isHandled }: Arrival,
  { inFlight, environment, keys, log }: Pick<AppOptions, "inFlight" | "environment" | "keys" | "log">,
): ApiError {
  const logFailure = (more: Partial<ErrorRecord>) =>
    log.error({ ...errorRecord(error, now, matched.pattern, id), ...more });
  const known = apiErrorOf(error, keys.secret);
  if (known) {
    const { kind } = known;
    if (kind.status >= 500 && !REFUSALS.has(kind)) logFailure({ code: kind.code });
    return known;
  }
  if (error instanceof OutOfTime) {
    logFailure({
      reason: isHandled ? "The handler did not finish" : "The handler could not be called in time",
    });
    return inFlight.isStopping ? STOPPING : UNAVAILABLE;
  }
  const isExpected = error instanceof StoreUnavailable;
  logFailure(isExpected || environment === "production" ? {} : { detail: Deno.inspect(error) });
  return isExpected ? UNAVAILABLE : INTERNAL;
}
