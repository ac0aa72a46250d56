import type { Admission } from "./admission/gate.ts";
import { BASE_PATH } from "./api/openapi.ts";
import type { Operation } from "./api/operation.ts";
import type { JsonBody } from "./http/body.ts";
import { OutOfTime } from "./http/in_flight.ts";
import { createRequestIds, hasValidHost, targetOf } from "./http/request.ts";
import { createMatcher, type Endpoint, type Match } from "./http/router.ts";
import { BoundedMap } from "./store/cache.ts";

/** A request as it arrived. */
export interface Arrival {
  readonly request: Request;
  readonly id: string;
  /** When, ms since the epoch. */
  readonly now: number;
  /** The same, by `performance.now()`. */
  readonly started: number;
  /** What the service's own URLs begin with. */
  readonly base: string;
  readonly path: string;
  readonly query: string;
  readonly matched: Match<Operation> | typeof BAD_HOST;
  readonly address: () => string;
  /** Who was charged; undefined where nobody was, or that is not decided yet. */
  admission: Admission | undefined;
  /** Once it is asked for: it cannot be read twice. */
  body: Promise<JsonBody> | undefined;
}

/** What the server knows of a request's connection. */
export interface ConnectionInfo {
  readonly remoteAddr: Deno.Addr;
}

/** How requests are taken in. */
export interface ArrivalsOptions {
  readonly operations: readonly Operation[];
  /** What the URLs in responses begin with; undefined for the origin that each request names. */
  readonly publicUrl: string | undefined;
  /** The time, in ms since the epoch. */
  readonly clock: () => number;
  /** The client's address, for requests without a valid key. */
  readonly clientAddress: (request: Request, info: ConnectionInfo) => string;
}

/** Without a valid Host there is no telling what the path is. */
export const BAD_HOST = { kind: "bad host", pattern: "" } as const;

/** Deno Deploy's own, such as `http+vsock`, behind a front end that speaks https; or anything, over HTTP/2. */
const OTHER_SCHEME = /^(?!https?:)[^:]*:/i;

/** Where a URL leads to, asked for with some method and Host. */
interface Destination extends Pick<Arrival, "base" | "path" | "query" | "matched"> {
  readonly host: string | null;
}

const MAX_DESTINATIONS = 10_000;
/** Most characters of a method and URL that are kept: more than clients send. */
const MAX_NAME_LENGTH = 200;

/** Finds out all that can be known of a request beforehand. */
export function createArrivals(
  { operations, publicUrl, clock, clientAddress }: ArrivalsOptions,
): (request: Request, info: ConnectionInfo) => Arrival {
  const match = createMatcher(operations);
  const requestId = createRequestIds();
  /** By method and URL: most requests go where others have gone before. */
  const destinations = new BoundedMap<string, Destination>(MAX_DESTINATIONS);

  function destinationOf(request: Request): Destination {
    const { method, url } = request;
    const name = `${method} ${url}`;
    const host = request.headers.get("host");
    const known = destinations.get(name);
    if (known?.host === host) return known;
    const target = targetOf(url);
    const { origin, path, query } = target;
    const destination = {
      host,
      base: publicUrl ?? origin.replace(OTHER_SCHEME, "https:"),
      path,
      query,
      matched: hasValidHost(request, target) ? match(method, path) : BAD_HOST,
    };
    // A bad Host may be of any length.
    if (name.length <= MAX_NAME_LENGTH && destination.matched !== BAD_HOST) {
      destinations.set(name, destination);
    }
    return destination;
  }

  return function arrive(request: Request, info: ConnectionInfo): Arrival {
    const { base, path, query, matched } = destinationOf(request);
    return {
      request,
      id: requestId(request),
      now: clock(),
      started: performance.now(),
      base,
      path,
      query,
      matched,
      address() {
        try {
          return clientAddress(request, info);
        } catch (cause) {
          // Deno tells of a connection until its request is answered: this one was given up.
          throw new OutOfTime("The request was answered already", { cause });
        }
      },
      admission: undefined,
      body: undefined,
    };
  };
}

/** Pages in a browser have no business at what is the operator's. */
export function isForOperator(matched: Arrival["matched"]): boolean {
  if (matched.kind === "found") return matched.endpoint.access === "operator";
  return matched.kind === "allow" && matched.access === "operator";
}

/** Whether there are limits on the path, so that the response tells of them. */
export function hasLimits({ matched, path }: Arrival): boolean {
  const pattern = matched.pattern || path;
  return matched === BAD_HOST || pattern === BASE_PATH || pattern.startsWith(`${BASE_PATH}/`);
}

/**
 * Makes a function that tells which path was meant by one that is wrong only in case, in slashes at its end or side
 * by side, or because the base path is missing. It gives the pattern, as the OpenAPI document writes it, and so nothing that
 * a client sent. Operators' paths are not suggested. The paths of the table are in lower case.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const suggest = createSuggester([{ method: "GET", path: "/v1/pets/{petId}", access: "key" }]);
 * assertEquals(suggest("/Pets/7/"), "/v1/pets/{petId}");
 * assertEquals(suggest("/v1/pet/7"), undefined);
 * ```
 */
export function createSuggester(endpoints: readonly Endpoint[]): (path: string) => string | undefined {
  const match = createMatcher(endpoints.filter(({ access }) => access !== "operator"));
  return function suggest(path: string): string | undefined {
    const tidy = path.toLowerCase().replaceAll(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
    const pattern = match("GET", tidy).pattern || match("GET", BASE_PATH + tidy).pattern;
    return pattern === "" ? undefined : pattern.replaceAll(/:(\w+)/g, "{$1}");
  };
}
