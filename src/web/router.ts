/** A row of the route table. A path segment `{name}` matches any non-empty segment. */
export interface Endpoint {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
}

/**
 * The result of matching a method and path. `pattern` is the path's pattern as metrics and the log show it, and
 * `endpoints` are those of the path.
 */
export type Match<Row extends Endpoint> =
  | {
    readonly kind: "found";
    readonly pattern: string;
    readonly endpoint: Row;
    readonly params: Readonly<Record<string, string>>;
  }
  | { readonly kind: "allow"; readonly pattern: string; readonly endpoints: readonly Row[] }
  | { readonly kind: "none"; readonly pattern: "" };

/** The path that Deno reports for `OPTIONS *`, a request about the whole service (RFC 9110 section 9.3.7). */
const ASTERISK = "/*";

/**
 * Returns a function that matches a method and a raw (still percent-encoded) path. If several paths match, the one with
 * the fewest parameters wins.
 *
 * If the table has the path only with other methods, the result is `allow` (RFC 9110 section 15.5.6). HEAD matches the
 * row of GET. Case and trailing slashes matter.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const match = createMatcher([{ method: "GET", path: "/toys/{toyId}" }]);
 * const found = match("GET", "/toys/a%20b");
 * assertEquals(found.kind === "found" && found.params, { toyId: "a b" });
 * assertEquals(match("POST", "/toys/1").kind, "allow");
 * assertEquals(match("GET", "/toys/%zz"), { kind: "none", pattern: "" });
 * ```
 */
export function createMatcher<Row extends Endpoint>(
  table: readonly Row[],
): (method: string, path: string) => Match<Row> {
  const byPath = [...Map.groupBy(table, ({ path }) => path)];
  const paths = byPath.map(([path, rows]) => ({
    pattern: path.replaceAll(/\{(\w+)\}/g, ":$1"),
    segments: path.split("/"),
    rows: new Map(rows.flatMap((row) => methodsOf(row).map((method) => [method, row]))),
    endpoints: rows,
  })).sort((one, other) => parametersIn(one) - parametersIn(other));
  const longest = Math.max(...paths.map(({ segments }) => segments.length));
  const service: Match<Row> = { kind: "allow", pattern: "*", endpoints: table };

  return function match(method: string, path: string): Match<Row> {
    if (method === "OPTIONS" && path === ASTERISK) return service;
    // One extra segment is enough to show that a path is too long.
    const given = path.split("/", longest + 1).map(decode);
    for (const { pattern, segments, rows, endpoints } of paths) {
      const params = paramsIn(segments, given);
      if (!params) continue;
      const endpoint = rows.get(method);
      if (endpoint) return { kind: "found", pattern, endpoint, params };
      return { kind: "allow", pattern, endpoints };
    }
    return { kind: "none", pattern: "" };
  };
}

function parametersIn({ segments }: { readonly segments: readonly string[] }): number {
  return segments.filter(isParameter).length;
}

function isParameter(segment: string): boolean {
  return segment.startsWith("{");
}

function methodsOf({ method }: Endpoint): string[] {
  return method === "GET" ? ["GET", "HEAD"] : [method];
}

/**
 * Value of `Allow` for these endpoints (RFC 9110 section 10.2.1).
 */
export function allowOf(endpoints: readonly Endpoint[]): string {
  return [...new Set(["OPTIONS", ...endpoints.flatMap(methodsOf)])].sort().join(", ");
}

/** The parameters by name; undefined if the segments do not match. */
function paramsIn(
  expected: readonly string[],
  given: readonly (string | undefined)[],
): Readonly<Record<string, string>> | undefined {
  if (expected.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, name] of expected.entries()) {
    const segment = given[index];
    if (segment && isParameter(name)) params[name.slice(1, -1)] = segment;
    else if (segment !== name) return undefined;
  }
  return params;
}

/** The percent-decoded segment; undefined if an escape is malformed or not UTF-8. */
function decode(segment: string): string | undefined {
  if (!segment.includes("%")) return segment;
  try {
    return decodeURIComponent(segment);
  } catch {
    return undefined;
  }
}
