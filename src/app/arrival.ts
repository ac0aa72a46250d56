import { BoundedMap, monotonicNow, type MonotonicTime } from "../base/mod.ts";
import { createMatcher, type Match } from "../web/mod.ts";
import {
  BASE_PATH,
  type Call,
  type Changed,
  type LimitOf,
  needsToken,
  type Operation,
} from "../service/mod.ts";
import type { Grant } from "../operator/token.ts";
import type { Admission, Caller } from "./admission.ts";
import { OutOfTime } from "./in_flight.ts";
import { createRequestIds, hasValidHost, targetOf } from "./target.ts";

/** A request, with its route, ID and time of arrival. */
export interface Arrival {
  readonly request: Request;
  readonly id: string;
  /** Time of arrival. */
  readonly now: number;
  /** The same time, for deadlines. */
  readonly at: MonotonicTime;
  /** Prefix of the service's own URLs. */
  readonly base: string;
  readonly path: string;
  readonly query: string;
  readonly matched: Match<Operation> | typeof BAD_HOST;
  /** Whether the path is for operators, even if nothing is there. Its responses have no CORS headers. */
  readonly isForOperator: boolean;
  /** Whether requests to the path count toward limits, so that their responses have limit headers. */
  readonly hasLimits: boolean;
  readonly address: () => string;
  /** What is charged; undefined if nothing is. */
  caller: Caller | undefined;
  /** Undefined if the request is not charged, or not admitted yet. */
  admission: Admission | undefined;
  /** Whose limit refused the request; undefined if none did. */
  limitOf: LimitOf | undefined;
  /** Undefined, unless the request has a valid token for an operators' operation. */
  byOperator: ByOperator | undefined;
  /** How long it was idle, in ms. */
  idleMs: number;
  /** Whether the handler has been called. */
  isHandled: boolean;
  /** The response that was made, before headers of the request were added. */
  made: Response | undefined;
  /** Set by the handler's first read, because a body can be read only once. */
  body: ReturnType<Call["readBody"]> | undefined;
}

/** What the log says of an operator's request. */
export interface ByOperator {
  readonly grant: Grant;
  /** ID of the operation. */
  readonly operation: string;
  readonly ids: Set<string>;
  changed: Changed;
}

/** A request's connection. */
export interface ConnectionInfo {
  readonly remoteAddr: Deno.Addr;
}

/** Options of {@linkcode createArrivals}. */
export interface ArrivalsOptions {
  readonly operations: readonly Operation[];
  /** Prefix of the URLs in responses; undefined for each request's own origin. */
  readonly publicUrl: string | undefined;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** Returns the client's address. Requests without a valid key are counted per address. */
  readonly clientAddress: (request: Request, info: ConnectionInfo) => string;
}

/** The match for a request whose Host is invalid, so that its path cannot be determined. */
export const BAD_HOST = { kind: "bad host", pattern: "" } as const;

/**
 * Another scheme, such as Deno Deploy's `http+vsock` behind its https front end, or any that an HTTP/2 client sends.
 */
const OTHER_SCHEME = /^(?!https?:)[^:]*:/i;

const OPERATOR_PATH = /^\/operator(?:\/|$)/;

type Route = Pick<Arrival, "base" | "path" | "query" | "matched" | "isForOperator" | "hasLimits">;

/** Kept routes also depend on the Host header. */
type KeptRoute = Route & { readonly host: string | null };

/** Maximum number of kept routes of a method. */
const MAX_ROUTES = 5_000;
/** Maximum length of a cached URL. Clients rarely send a longer one. */
const MAX_URL_LENGTH = 200;

/** Returns a function that finds the route of a request. */
function createRoutes(
  { operations, publicUrl }: Pick<ArrivalsOptions, "operations" | "publicUrl">,
): (request: Request) => Route {
  const match = createMatcher(operations);
  /** The routes of requests, by method and URL. Methods that no operation has are not kept. */
  const routes: ReadonlyMap<string, BoundedMap<string, KeptRoute>> = new Map(
    operations.map(({ method }) => [method, new BoundedMap<string, KeptRoute>(MAX_ROUTES)]),
  );

  return function routeOf(request: Request): Route {
    const { method, url } = request;
    const host = request.headers.get("host");
    const known = routes.get(method)?.get(url);
    if (known?.host === host) return known;
    const target = targetOf(url);
    const { origin, path, query } = target;
    const base = publicUrl ?? origin.replace(OTHER_SCHEME, "https:");
    const isValid = hasValidHost(request, target);
    const matched = isValid ? match(method, path) : BAD_HOST;
    const of = {
      isForOperator: belongsToOperators(matched, path),
      hasLimits: countsTowardLimits(matched, path),
    };
    const route = { host, base, path, query, matched, ...of };
    if (isValid && url.length <= MAX_URL_LENGTH) routes.get(method)?.set(url, route);
    return route;
  };
}

/** Returns a function that turns a request into an {@linkcode Arrival}. It never throws. */
export function createArrivals(
  options: ArrivalsOptions,
): (request: Request, info: ConnectionInfo) => Arrival {
  const { clock, clientAddress } = options;
  const routeOf = createRoutes(options);
  const requestId = createRequestIds();

  return function arrive(request: Request, info: ConnectionInfo): Arrival {
    const id = requestId(request); // First, because it loads all headers at once.
    const { base, path, query, matched, isForOperator, hasLimits } = routeOf(request);
    return {
      request,
      id,
      now: clock(),
      at: monotonicNow(),
      base,
      path,
      query,
      matched,
      isForOperator,
      hasLimits,
      address() {
        try {
          return clientAddress(request, info);
        } catch (cause) {
          // Deno forgets the connection once a response has been sent: here, after a timeout.
          throw new OutOfTime("The request already has a response", { cause });
        }
      },
      caller: undefined,
      admission: undefined,
      limitOf: undefined,
      byOperator: undefined,
      idleMs: 0,
      isHandled: false,
      made: undefined,
      body: undefined,
    };
  };
}

function belongsToOperators(matched: Arrival["matched"], path: string): boolean {
  if (OPERATOR_PATH.test(path)) return true;
  if (matched.kind === "found") return needsToken(matched.endpoint.access);
  return matched.kind === "allow" && matched.endpoints.every(({ access }) => needsToken(access));
}

function countsTowardLimits(matched: Arrival["matched"], path: string): boolean {
  const pattern = matched.pattern || path;
  return matched === BAD_HOST || pattern === BASE_PATH || pattern.startsWith(`${BASE_PATH}/`);
}

/**
 * Returns a function that suggests a path for one with the wrong case, extra slashes or no base path. The suggestion is
 * a pattern from the OpenAPI document, so it repeats nothing that the client sent. Operators' paths are not suggested.
 * The paths of the endpoints must be in lower case.
 */
export function createSuggester(
  endpoints: readonly Pick<Operation, "method" | "path" | "access">[],
): (path: string) => string | undefined {
  const match = createMatcher(
    endpoints.filter(({ access, path }) => !needsToken(access) && !OPERATOR_PATH.test(path)),
  );
  return function suggest(path: string): string | undefined {
    const tidy = path.toLowerCase().replaceAll(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
    const pattern = match("GET", tidy).pattern || match("GET", BASE_PATH + tidy).pattern;
    return pattern === "" ? undefined : pattern.replaceAll(/:(\w+)/g, "{$1}");
  };
}
