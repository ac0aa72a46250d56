import type { BodyRules, JsonBody } from "./body.ts";

/**
 * Who may call a route: holders of a valid API key, who are charged; anyone, whose address is charged; anyone;
 * or the operator, where other addresses are charged.
 */
export type Access = "key" | "address" | "public" | "operator";

/** What a handler is given beside the request. */
export interface Call {
  /** Path parameters by name, percent-decoded. */
  readonly params: Readonly<Record<string, string>>;
  /** Query string with its leading `?`, or empty. */
  readonly query: string;
  /** What the service's own URLs begin with, such as `http://localhost:8000`. */
  readonly base: string;
  /** When the request arrived, ms since the epoch. */
  readonly now: number;
  /** Id of the account that called; empty where none had to. */
  readonly accountId: string;
  /**
   * What a commit that is made for the caller has to check: that no account has changed since it was admitted; empty
   * where that is certain. Asked before each commit, for none is begun once the request was given up.
   *
   * @throws {OutOfTime}
   */
  readonly checks: () => readonly Deno.AtomicCheck[];
  /** The client's address. */
  readonly address: () => string;
  /** Reads the request's body as `readJsonObject` does; the client may take its time. */
  readonly readBody: (rules?: Partial<BodyRules>) => Promise<JsonBody>;
}

/** What a request is routed to. A path segment written `{name}` matches any one non-empty segment. */
export interface Endpoint {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly access: Access;
}

/** Answers a request, maybe with a shared response; or throws an ApiError. */
export type Handler = (request: Request, call: Call) => Response | Promise<Response>;

/** A row of the route table. A path segment written `:name` matches any one non-empty segment. */
export interface Route {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly access: Access;
  readonly handler: Handler;
  /**
   * Whether all that the handler changes is changed in commits with the checks of its call. It is called again
   * where one of them fails, and whatever it did without them would be done twice.
   */
  readonly checksInCommit?: boolean;
}

/** What the table says of a method and path; `path` is the pattern that the path matched. */
export type Match =
  | { readonly kind: "route"; readonly route: Route; readonly params: Readonly<Record<string, string>> }
  | { readonly kind: "allow"; readonly path: string; readonly access: Access; readonly allow: string }
  | { readonly kind: "none" };

/** A path of the table, and its routes by method. */
interface Path {
  readonly segments: readonly string[];
  readonly routes: ReadonlyMap<string, Route>;
  readonly allow: string;
}

/** Where a request's path leads to. */
interface Found {
  readonly path: Path;
  readonly params: Readonly<Record<string, string>>;
}

/** How Deno gives the target of `OPTIONS *`, which asks about the service as a whole (RFC 9110 section 9.3.7). */
const ASTERISK = "/*";

const NONE: Match = { kind: "none" };

/**
 * Makes a route table into a matcher of method and raw (still percent-encoded) path. Where several paths fit, the
 * one with the fewest parameters is taken.
 *
 * A path that is in the table under other methods gives `allow` (RFC 9110 section 15.5.6). HEAD is
 * answered by GET's route. Paths are compared exactly: case and trailing slashes count.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const match = createMatcher([
 *   { method: "GET", path: "/pets/:petId", access: "key", handler: () => new Response() },
 * ]);
 * const found = match("GET", "/pets/a%20b");
 * assertEquals(found.kind === "route" && found.params, { petId: "a b" });
 * assertEquals(match("POST", "/pets/1"), {
 *   kind: "allow",
 *   path: "/pets/:petId",
 *   access: "key",
 *   allow: "GET, HEAD, OPTIONS",
 * });
 * assertEquals(match("GET", "/pets/%zz"), { kind: "none" });
 * ```
 */
export function createMatcher(routes: readonly Route[]): (method: string, path: string) => Match {
  const paths: Path[] = [];
  const literal = new Map<string, Found>();
  const table = [...Map.groupBy(routes, ({ path }) => path)];
  for (const [pattern, own] of table.sort(([one], [other]) => parametersIn(one) - parametersIn(other))) {
    const byMethod = own.flatMap((route) => methodsOf(route).map((method) => [method, route] as const));
    const path = { segments: pattern.split("/"), routes: new Map(byMethod), allow: allowValue(own) };
    paths.push(path);
    if (parametersIn(pattern) === 0) literal.set(pattern, { path, params: {} });
  }

  const withParameters = paths.filter(({ segments }) => segments.some(isParameter));
  const longest = Math.max(...paths.map(({ segments }) => segments.length));
  const service: Match = { kind: "allow", path: "*", access: "public", allow: allowValue(routes) };

  return function match(method: string, path: string): Match {
    if (method === "OPTIONS" && path === ASTERISK) return service;
    const candidates = path.includes("%") ? paths : withParameters;
    // Of a path that is too long, one segment too many is enough.
    const found = literal.get(path) ?? find(candidates, path.split("/", longest + 1).map(decode));
    if (found === undefined) return NONE;
    const { path: { routes, allow }, params } = found;
    const route = routes.get(method);
    if (route) return { kind: "route", route, params };
    const [other] = routes.values();
    return other ? { kind: "allow", path: other.path, access: other.access, allow } : NONE;
  };
}

function parametersIn(pattern: string): number {
  return pattern.split("/").filter(isParameter).length;
}

function isParameter(segment: string): boolean {
  return segment.startsWith(":");
}

function methodsOf({ method }: Route): string[] {
  return method === "GET" ? ["GET", "HEAD"] : [method];
}

/** Value of `Allow` for what these routes answer. */
function allowValue(routes: readonly Route[]): string {
  return [...new Set(["OPTIONS", ...routes.flatMap(methodsOf)])].sort().join(", ");
}

/** The first path of the table that a path of these decoded segments has the form of. */
function find(paths: readonly Path[], given: readonly (string | undefined)[]): Found | undefined {
  for (const candidate of paths) {
    const { segments } = candidate;
    const params: Record<string, string> = {};
    const fits = segments.length === given.length && segments.every((expected, index) => {
      const segment = given[index];
      if (!segment || !isParameter(expected)) return segment === expected;
      params[expected.slice(1)] = segment;
      return true;
    });
    if (fits) return { path: candidate, params };
  }
  return undefined;
}

/** The percent-decoded segment, or undefined when an escape is malformed or not UTF-8. */
function decode(segment: string): string | undefined {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
