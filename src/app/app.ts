import { SECOND } from "../base/mod.ts";
import { StoreUnavailable, type Transactions } from "../engine/mod.ts";
import { bearerToken, deprecationHeaders, isGone, setCorsHeaders } from "../web/headers.ts";
import {
  type Access,
  allowOf,
  ApiError,
  apiErrorOf,
  BODY_RULES,
  type BodyRules,
  codeOf,
  createResponse,
  errorResponse,
  ERRORS,
  INTERNAL,
  type JsonBody,
  OVERLOADED,
  ownOf,
  readJsonObject,
} from "../web/mod.ts";
import {
  ACCESS,
  API_KEY_LIKE,
  BASE_PATH,
  needsToken,
  type Operation,
  STOPPING,
  UNAVAILABLE,
} from "../resource/mod.ts";
import { invalidApiKey } from "../accounts/api_key.ts";
import { ACCOUNT_SUSPENDED, type Realm, SUSPENDED, unauthorizedIn } from "../accounts/bearer.ts";
import { wrongOperatorToken } from "../operator/token.ts";
import type { Admissions, Caller } from "./admission.ts";
import {
  type Arrival,
  type ArrivalsOptions,
  type ConnectionInfo,
  createArrivals,
  createSuggester,
  hasLimits,
  isForOperator,
} from "./arrival.ts";
import { type Budget, type InFlight, OutOfTime } from "./in_flight.ts";
import { refusedResponse, withLimitHeaders } from "./limit_responses.ts";
import { errorRecord, type Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { hostFault } from "./request.ts";

/** Options of {@linkcode createApp}. */
export interface AppOptions extends ArrivalsOptions, Realm {
  readonly admissions: Admissions;
  readonly transactions: Transactions;
  /** Whether an Authorization header has a token for operations with this access. */
  readonly hasToken: ReadonlyMap<Access, (authorization: string | null) => boolean>;
  /** Whether the service runs on Deno Deploy, where chunked bodies may pause. */
  readonly onDeploy: boolean;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly inFlight: InFlight;
}

/** Responds to a request. Never throws or rejects. */
export type App = (request: Request, info: ConnectionInfo) => Response | Promise<Response>;

/** The end of a document's path. The beginning is that of the operations in the document. */
const DOCUMENT = "/openapi.json";
/** If a body arrives longer than this after its headers, its account is checked again, in ms. */
const SLOW_BODY = SECOND;
/** How a request that matches no operation is charged. */
const MISS: Pick<Operation, "access" | "method"> = { access: ACCESS.key, method: "GET" };
/** Statuses of requests that were refused whatever their content. */
const REFUSALS: ReadonlySet<number> = new Set([403, 429, 503]);
/** Methods that metrics and the access log name. Any other is `other`, because a client can send any text. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT"]);

/**
 * Returns the whole service as a function of a request. A request passes these functions in order:
 *
 *     arrive      matches the route
 *     callerOf    determines what the request is charged to
 *     begin       charges it, after a version check if memory must be current (`admission.ts`)
 *     answerFor   returns the refusal, the operation's response, or an error
 *     finish      adds limit headers and CORS; writes metrics and the access log
 */
export function createApp(options: AppOptions): App {
  const { operations, admissions, transactions, hasToken, environment, log, metrics, inFlight } = options;
  const arrive = createArrivals(options);
  const suggest = createSuggester(operations);
  const unauthorized = unauthorizedIn(options);
  const bodyRules = { ...BODY_RULES, ...(options.onDeploy && { stallMs: Infinity }) };
  const documents = operations.map(({ path }) => path).filter((path) => path.endsWith(DOCUMENT));

  return function fetch(request: Request, info: ConnectionInfo): Response | Promise<Response> {
    const arrival = arrive(request, info);
    const done = (response: Response) => finish(arrival, response);
    const fail = (error: unknown) => done(errorResponse(asApiError(error, arrival)));
    const operation = arrival.matched.kind === "found" ? arrival.matched.endpoint : undefined;
    const { isForMonitoring = false, timeoutMs } = operation ?? {};
    if (inFlight.isStopping && !isForMonitoring) return done(errorResponse(STOPPING));
    if (inFlight.isFull(isForMonitoring)) return done(errorResponse(OVERLOADED));
    try {
      const caller = callerOf(arrival);
      const { ready, work } = caller
        ? admissions.begin(caller, (admission, budget) => {
          arrival.admission = admission;
          return answerFor(arrival, budget);
        })
        : { ready: undefined, work: (budget: Budget) => answerFor(arrival, budget) };
      const late = (error: unknown) => void asApiError(error, arrival); // Logs it.
      const { at } = arrival;
      return inFlight.answer({ at, timeoutMs, isForMonitoring, ready, work, finish: done, fail, late });
    } catch (error) {
      return fail(error);
    }
  };

  /** What the request is charged to, or undefined if it is free. */
  function callerOf(arrival: Arrival): Caller | undefined {
    const { request, matched, now, at, address } = arrival;
    const { access, method } = matched.kind === "found" ? matched.endpoint : MISS;
    if (access === ACCESS.public || request.method === "OPTIONS") return undefined;
    const authorization = request.headers.get("authorization");
    if (hasToken.get(access)?.(authorization)) {
      if (matched.kind === "found" && access === ACCESS.operator) arrival.operation = matched.endpoint.id;
      return undefined;
    }
    if (matched.kind !== "found" && !hasLimits(arrival)) return undefined;
    const isRead = method === "GET";
    const isVital = matched.kind === "found" && matched.endpoint.isVital === true;
    const key = access === ACCESS.key ? bearerToken(authorization) : undefined;
    return { key, address, now, at, isRead, isVital };
  }

  /** Responds to a charged request, or refuses it. */
  function answerFor(arrival: Arrival, budget: Budget): Response | Promise<Response> {
    const { request, now, path, matched, admission } = arrival;
    const { refusal } = admission?.decision ?? {};
    if (admission && refusal) return refusedResponse(admission.decision, refusal);
    switch (matched.kind) {
      case "found": {
        const { endpoint: operation, params } = matched;
        if (operation.access === ACCESS.key && admission?.account === undefined) {
          return admission?.isSuspended ? SUSPENDED : unauthorized(request.headers.get("authorization"));
        }
        if (needsToken(operation.access) && admission) {
          return wrongOperatorToken(operation.access, options.realm, request.headers.get("authorization"));
        }
        return operation.answer(callOf(arrival, params, budget));
      }
      case "allow": {
        const allow = allowOf(matched.endpoints.filter(({ deprecated }) => !isGone(deprecated, now)));
        if (request.method === "OPTIONS") return createResponse(null, { status: 204, headers: { allow } });
        throw new ApiError(ERRORS.method_not_allowed, `Allowed methods: ${allow}.`, { allow });
      }
      case "none": {
        const meant = suggest(path);
        const hint = meant === undefined ? `See ${documentOf(path)}.` : `Did you mean ${meant}?`;
        throw new ApiError(ERRORS.not_found, `There is nothing at this path. ${hint}`);
      }
      case "bad host":
        throw new ApiError(ERRORS.invalid_request, hostFault(request));
    }
  }

  /** The sender that a request's body counts for. Operators, who are not charged, count like an account. */
  function senderOf({ admission }: Arrival): string {
    return admission ? admission.account?.id ?? "" : "operator";
  }

  /** The call that an operation answers. */
  function callOf(
    arrival: Arrival,
    params: Readonly<Record<string, string>>,
    budget: Budget,
  ): Parameters<Operation["answer"]>[0] {
    const { request, base, query, now, address, admission } = arrival;
    return {
      request,
      params,
      query,
      base,
      now,
      accountId: admission?.account?.id ?? "",
      address,
      async transact(transaction) {
        const done = await transactions.run(transaction, { mayBegin: () => budget.check() });
        return done.result;
      },
      readBody: (rules) => arrival.body ??= readBody(arrival, { ...bodyRules, ...rules }, budget),
      note: (id) => void (arrival.ids ??= new Set()).add(id),
    };
  }

  /** Reads the body. If it arrived late, the account may have changed since the request was admitted. */
  async function readBody(arrival: Arrival, rules: BodyRules, budget: Budget): Promise<JsonBody> {
    const { request, now, at, address, admission } = arrival;
    const body = await budget.pausedFor(readJsonObject(request, rules, senderOf(arrival))).catch((error) => {
      const isOverloaded = error instanceof ApiError && error.kind === ERRORS.overloaded;
      if (admission && isOverloaded) admissions.giveBack(admission, address());
      throw error;
    });
    if (admission?.account && performance.now() - at > SLOW_BODY) {
      const account = await admissions.find(bearerToken(request.headers.get("authorization")) ?? "", now);
      if (account === undefined) throw invalidApiKey(options.realm);
      if (account.suspendedAt !== null) throw ACCOUNT_SUSPENDED;
    }
    return body;
  }

  function finish(arrival: Arrival, made: Response): Response {
    const { request, id, now, path, matched, address, admission } = arrival;
    // Refusals already have limit headers, as do responses with a limit of their own.
    const isLimited = hasLimits(arrival) && !made.headers.has("x-ratelimit-limit");
    const decision = isLimited ? admission?.decision ?? admissions.peek(request, address, now) : undefined;
    const response = decision ? withLimitHeaders(made, decision) : ownOf(made);
    const { headers } = response;
    const deprecation = matched.kind === "found" ? matched.endpoint.deprecated : undefined;
    // Kept responses already have them, which is faster.
    if (deprecation && !headers.has("deprecation")) {
      for (const [name, value] of Object.entries(deprecationHeaders(deprecation))) headers.set(name, value);
    }
    if (response.status === 404) {
      headers.append("link", `<${options.publicUrl ?? ""}${documentOf(path)}>; rel="service-desc"`); // RFC 8631
    }
    headers.set("x-request-id", id);
    if (request.headers.get("origin") !== null && !isForOperator(arrival)) setCorsHeaders(request, headers);
    record(arrival, response, codeOf(made));
    return response;
  }

  /** The path of the document with the operations below a path: the document for clients, or that for operators. */
  function documentOf(path: string): string {
    return documents.find((document) => path.startsWith(document.slice(0, -DOCUMENT.length))) ??
      BASE_PATH + DOCUMENT;
  }

  /** Updates the metrics, logs an operator's request, and writes the access log if it is on. */
  function record(
    { request, id, now, at, matched, address, admission, operation, ids }: Arrival,
    { status }: Response,
    code: string,
  ): void {
    const method = METHODS.has(request.method) ? request.method : "other";
    const ms = performance.now() - at;
    const route = matched.pattern;
    metrics.requests.add(1, route, method, `${status}`);
    metrics.requestDuration.observe(ms / 1_000, route);
    const isRefused = REFUSALS.has(status);
    const plan = admission?.account?.plan ?? "";
    if (isRefused) metrics.refused.add(1, plan, code);
    if (admission && !admission.isFree && !admission.decision.refusal) metrics.admitted.add(1, plan);
    if (!operation && !log.access) return;
    const time = new Date(now).toISOString();
    if (operation) log.operator({ time, address: address(), operation, ids: [...ids ?? []], status });
    if (!log.access) return;
    const accountId = admission?.account?.id ?? (isRefused ? admissions.ownerOf(request) : "");
    log.access({ time, id, address: address(), method, route, status, code, ms: Math.round(ms), accountId });
  }

  /** The error that the client receives. Anything other than an ApiError is logged and stays internal. */
  function asApiError(error: unknown, { id, now, matched }: Arrival): ApiError {
    const known = apiErrorOf(error, API_KEY_LIKE);
    if (known) return known;
    if (error instanceof OutOfTime) return inFlight.isStopping ? STOPPING : UNAVAILABLE;
    const isExpected = error instanceof StoreUnavailable;
    const detail = isExpected || environment === "production" ? {} : { detail: Deno.inspect(error) };
    log.error({ ...errorRecord(error, now, matched.pattern, id), ...detail });
    return isExpected ? UNAVAILABLE : INTERNAL;
  }
}
