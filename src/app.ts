import { type Admission, type Gate, type PendingAdmission, unauthorized } from "./access/admission.ts";
import { refusedResponse, withLimitHeaders } from "./access/limit_headers.ts";
import { wrongOperatorToken } from "./access/operator_token.ts";
import { type Arrival, BAD_HOST, BASE_PATH, isForOperator, isVersioned, patternOf } from "./arrival.ts";
import { BODY_RULES, type BodyRules, readJsonObject } from "./http/body.ts";
import { setCorsHeaders } from "./http/cors.ts";
import {
  ApiError,
  INTERNAL,
  OVERLOADED,
  type Problem,
  problemResponse,
  STOPPING,
  UNAVAILABLE,
} from "./http/error.ts";
import { type Budget, type InFlight, OutOfTime } from "./http/in_flight.ts";
import { describeError, type Log } from "./http/log.ts";
import { createRequestIds, hasValidHost, targetOf } from "./http/request.ts";
import { createResponse, ownOf } from "./http/response.ts";
import { createMatcher, type Route } from "./http/router.ts";
import { StoreUnavailable } from "./kv/deadline.ts";
import { ADMITTED, REFUSED, REQUEST_DURATION, REQUESTS } from "./metrics/metrics.ts";

/** What is done with requests. */
export interface AppOptions {
  readonly routes: readonly Route[];
  /** Admits requests. */
  readonly gate: Gate;
  /** Whether an Authorization value is the operator's. */
  readonly isOperator: (authorization: string | null) => boolean;
  /** What the URLs in responses begin with; undefined for the origin that each request names. */
  readonly publicUrl: string | undefined;
  /** Whether HTTP/1.1 bodies may come in chunks. */
  readonly chunkedBodies: boolean;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  readonly log: Log;
  /** The client's address, for requests without a valid key. */
  readonly clientAddress: (request: Request, info: ConnectionInfo) => string;
  readonly inFlight: InFlight;
}

/** What the server knows of a request's connection. */
export interface ConnectionInfo {
  readonly remoteAddr: Deno.Addr;
}

/** Answers a request; never throws or rejects. */
export type App = (request: Request, info: ConnectionInfo) => Response | Promise<Response>;

/** Methods that metrics tell apart. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PATCH", "DELETE", "OPTIONS", "PUT"]);

/** A response, and who was charged for it; undefined where nobody was. */
interface Answer {
  readonly response: Response;
  readonly admission: Admission | undefined;
}

/** The whole service as a function of a request: the request path, top to bottom. */
export function createApp(
  { routes, gate, isOperator, publicUrl, chunkedBodies, ...options }: AppOptions,
): App {
  const { clock, log, clientAddress, inFlight } = options;
  const bodyRules = { ...BODY_RULES, chunked: chunkedBodies };
  const match = createMatcher(routes);
  const requestId = createRequestIds();
  const description = `<${publicUrl ?? ""}${BASE_PATH}/openapi.json>; rel="service-desc"`;

  return function fetch(request: Request, info: ConnectionInfo): Response | Promise<Response> {
    const arrival = arrive(request, info);
    if (inFlight.isStopping) return finish(arrival, refused(STOPPING));
    if (inFlight.isFull) return finish(arrival, refused(OVERLOADED));
    const fail = (error: unknown) => finish(arrival, refused(problemOf(error, arrival)));
    try {
      const pending = enter(arrival);
      const work = (budget: Budget) => answer(arrival, pending, budget);
      const done = (answer: Answer) => finish(arrival, answer);
      return inFlight.answer({ started: arrival.started, ready: pending?.ready, work, finish: done, fail });
    } catch (error) {
      return fail(error);
    }
  };

  function arrive(request: Request, info: ConnectionInfo): Arrival {
    const target = targetOf(request.url);
    const { origin, path, query } = target;
    return {
      request,
      id: requestId(request),
      now: clock(),
      started: performance.now(),
      base: publicUrl ?? origin,
      path,
      query,
      matched: hasValidHost(request, target) ? match(request.method, path) : BAD_HOST,
      address: () => clientAddress(request, info),
    };
  }

  function answer(
    arrival: Arrival,
    pending: PendingAdmission | undefined,
    budget: Budget,
  ): Answer | Promise<Answer> {
    const charged = (admission: Admission | undefined) => {
      if (admission) countAdmission(admission);
      const responding = () => respond(arrival, admission, budget);
      return attempt(responding, (response) => ({ response, admission }), arrival, admission);
    };
    return attempt(() => pending?.admit(), charged, arrival);
  }

  /** What `use` makes of what `work` comes to, or the answer to what it throws. */
  function attempt<Value>(
    work: () => Value | Promise<Value>,
    use: (value: Value) => Answer | Promise<Answer>,
    arrival: Arrival,
    admission?: Admission,
  ): Answer | Promise<Answer> {
    const fail = (error: unknown) => ({ response: problemResponse(problemOf(error, arrival)), admission });
    try {
      const value = work();
      return value instanceof Promise ? value.then(use, fail) : use(value);
    } catch (error) {
      return fail(error);
    }
  }

  /** What it takes to charge whoever the request is to be charged to. */
  function enter(arrival: Arrival): PendingAdmission | undefined {
    const { request, matched, now, address } = arrival;
    const access = matched.kind === "route" ? matched.route.access : "key";
    if (access === "public" || request.method === "OPTIONS") return undefined;
    const authorization = request.headers.get("authorization");
    if (access === "operator" && isOperator(authorization)) return undefined;
    if (matched.kind !== "route" && !isVersioned(arrival)) return undefined;
    return gate.enter(access === "key" ? authorization : null, address, now);
  }

  function respond(
    arrival: Arrival,
    admission: Admission | undefined,
    budget: Budget,
  ): Response | Promise<Response> {
    const { request, base, query, now, address, matched } = arrival;
    const { refusal } = admission?.decision ?? {};
    if (admission && refusal) return refusedResponse(admission.decision, refusal);
    switch (matched.kind) {
      case "route": {
        const { route, params } = matched;
        if (route.access === "key" && admission?.account === undefined) {
          return unauthorized(request.headers.get("authorization"));
        }
        if (route.access === "operator" && admission !== undefined) return wrongOperatorToken();
        const accountId = admission?.account?.id ?? "";
        const readBody = (rules?: Partial<BodyRules>) =>
          budget.without(readJsonObject(request, rules ? { ...bodyRules, ...rules } : bodyRules));
        return route.handler(request, { params, query, base, now, accountId, address, readBody });
      }
      case "allow": {
        const { allow } = matched;
        if (request.method === "OPTIONS") return createResponse(null, { status: 204, headers: { allow } });
        throw new ApiError("method_not_allowed", `This path answers ${allow}.`, { allow });
      }
      case "none":
        throw new ApiError("not_found", "There is nothing at this path.");
      case "bad host":
        throw new ApiError(
          "invalid_request",
          "The Host header must be a host name or address, and a port or none.",
        );
    }
  }

  function finish(arrival: Arrival, { response: answer, admission }: Answer): Response {
    const { request, id, now, started, matched, address } = arrival;
    // Refusals have them already, and so have responses that tell of a limit of their own.
    const isLimited = isVersioned(arrival) && !answer.headers.has("x-ratelimit-limit");
    const decision = isLimited ? admission?.decision ?? gate.peek(address(), now) : undefined;
    const response = decision ? withLimitHeaders(answer, decision) : ownOf(answer);
    const { headers, status } = response;
    if (status === 404) headers.append("link", description); // RFC 8631
    headers.set("x-request-id", id);
    if (request.headers.get("origin") !== null && !isForOperator(matched)) setCorsHeaders(request, headers);
    const route = patternOf(matched);
    REQUESTS.add(1, route, METHODS.has(request.method) ? request.method : "other", `${status}`);
    REQUEST_DURATION.observe((performance.now() - started) / 1_000, route);
    if (log.access) {
      const time = new Date(now).toISOString();
      const accountId = admission?.account?.id ?? "";
      log.access({ time, id, method: request.method, route, status, ms: clock() - now, accountId });
    }
    return response;
  }

  /** What a client is told of what was thrown. Only an ApiError speaks for itself; the rest is logged. */
  function problemOf(error: unknown, { id, now, matched }: Arrival): Problem {
    if (error instanceof ApiError) return error;
    if (error instanceof OutOfTime) return inFlight.isStopping ? STOPPING : UNAVAILABLE;
    log.error({ time: new Date(now).toISOString(), id, route: patternOf(matched), ...describeError(error) });
    return error instanceof StoreUnavailable ? UNAVAILABLE : INTERNAL;
  }
}

function countAdmission({ account, decision: { refusal } }: Admission): void {
  const plan = account?.plan ?? "";
  if (refusal === undefined) ADMITTED.add(1, plan);
  else REFUSED.add(1, plan, refusal);
}

/** The answer to a request for which nobody is charged. */
function refused(problem: Problem): Answer {
  return { response: problemResponse(problem), admission: undefined };
}
