/**
 * Who may call an operation: holders of a valid API key, who are charged; anyone, whose address is charged; anyone;
 * or the operator, where other addresses are charged.
 */
export type Access = "key" | "address" | "public" | "operator";

/** What a request is routed to. A path segment written `{name}` matches any one non-empty segment. */
export interface Endpoint {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  readonly access: Access;
}

/** What the table says of a method and path; `pattern` is that of the path, as metrics and the log write it. */
export type Match<Row extends Endpoint> =
  | {
    readonly kind: "found";
    readonly pattern: string;
    readonly endpoint: Row;
    readonly params: Readonly<Record<string, string>>;
  }
  | { readonly kind: "allow"; readonly pattern: string; readonly access: Access; readonly allow: string }
  | { readonly kind: "none"; readonly pattern: "" };

/** A path of the table, and its rows by method. */
interface Path<Row> {
  readonly pattern: string;
  readonly segments: readonly string[];
  readonly rows: ReadonlyMap<string, Row>;
  readonly allow: string;
}

/** Where a request's path leads to. */
interface Found<Row> {
  readonly path: Path<Row>;
  readonly params: Readonly<Record<string, string>>;
}

/** How Deno gives the target of `OPTIONS *`, which asks about the service as a whole (RFC 9110 section 9.3.7). */
const ASTERISK = "/*";

const NONE = { kind: "none", pattern: "" } as const;

/**
 * Makes a table into a matcher of method and raw (still percent-encoded) path. If several paths fit, the
 * one with the fewest parameters is taken.
 *
 * A path that is in the table under other methods gives `allow` (RFC 9110 section 15.5.6). HEAD is
 * answered by GET's row. Paths are compared exactly: case and trailing slashes count.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const match = createMatcher([{ method: "GET", path: "/pets/{petId}", access: "key" }]);
 * const found = match("GET", "/pets/a%20b");
 * assertEquals(found.kind === "found" && found.params, { petId: "a b" });
 * assertEquals(match("POST", "/pets/1"), {
 *   kind: "allow",
 *   pattern: "/pets/:petId",
 *   access: "key",
 *   allow: "GET, HEAD, OPTIONS",
 * });
 * assertEquals(match("GET", "/pets/%zz"), { kind: "none", pattern: "" });
 * ```
 */
export function createMatcher<Row extends Endpoint>(
  table: readonly Row[],
): (method: string, path: string) => Match<Row> {
  const paths: Path<Row>[] = [];
  const literal = new Map<string, Found<Row>>();
  const byPath = [...Map.groupBy(table, ({ path }) => path)];
  for (const [text, own] of byPath.sort(([one], [other]) => parametersIn(one) - parametersIn(other))) {
    const byMethod = own.flatMap((row) => methodsOf(row).map((method) => [method, row] as const));
    const path = {
      pattern: text.replaceAll(/\{(\w+)\}/g, ":$1"),
      segments: text.split("/"),
      rows: new Map(byMethod),
      allow: allowValue(own),
    };
    paths.push(path);
    if (parametersIn(text) === 0) literal.set(text, { path, params: {} });
  }

  const withParameters = paths.filter(({ segments }) => segments.some(isParameter));
  const longest = Math.max(...paths.map(({ segments }) => segments.length));
  const service: Match<Row> = { kind: "allow", pattern: "*", access: "public", allow: allowValue(table) };

  return function match(method: string, path: string): Match<Row> {
    if (method === "OPTIONS" && path === ASTERISK) return service;
    const candidates = path.includes("%") ? paths : withParameters;
    // Of a path that is too long, one segment too many is enough.
    const found = literal.get(path) ?? find(candidates, path.split("/", longest + 1).map(decode));
    if (found === undefined) return NONE;
    const { path: { pattern, rows, allow }, params } = found;
    const endpoint = rows.get(method);
    if (endpoint) return { kind: "found", pattern, endpoint, params };
    const [other] = rows.values();
    return other ? { kind: "allow", pattern, access: other.access, allow } : NONE;
  };
}

function parametersIn(pattern: string): number {
  return pattern.split("/").filter(isParameter).length;
}

function isParameter(segment: string): boolean {
  return segment.startsWith("{");
}

function methodsOf({ method }: Endpoint): string[] {
  return method === "GET" ? ["GET", "HEAD"] : [method];
}

/** Value of `Allow` for these rows. */
function allowValue(rows: readonly Endpoint[]): string {
  return [...new Set(["OPTIONS", ...rows.flatMap(methodsOf)])].sort().join(", ");
}

/** The first path of the table that a path of these decoded segments has the form of. */
function find<Row>(
  paths: readonly Path<Row>[],
  given: readonly (string | undefined)[],
): Found<Row> | undefined {
  for (const candidate of paths) {
    const { segments } = candidate;
    const params: Record<string, string> = {};
    const fits = segments.length === given.length && segments.every((expected, index) => {
      const segment = given[index];
      if (!segment || !isParameter(expected)) return segment === expected;
      params[expected.slice(1, -1)] = segment;
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
