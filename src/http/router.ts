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
   * What each commit that is made for the caller has to check: that no account has changed since it was admitted.
   * Empty where that is certain.
   */
  readonly checks: readonly Deno.AtomicCheck[];
  /** The client's address. */
  readonly address: () => string;
  /** Reads the request's body as `readJsonObject` does; the client may take its time. */
  readonly readBody: (rules?: Partial<BodyRules>) => Promise<JsonBody>;
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

interface Node {
  readonly children: Map<string, Node>;
  parameter?: { readonly name: string; readonly node: Node };
  readonly routes: Map<string, Route>;
  /** Value of `Allow`: the methods of this path, sorted. */
  allow: string;
}

/** Where a path leads to. */
interface Found {
  readonly node: Node;
  readonly params: Readonly<Record<string, string>>;
}

/** How Deno gives the target of `OPTIONS *`, which asks about the service as a whole (RFC 9110 section 9.3.7). */
const ASTERISK = "/*";

const NONE: Match = { kind: "none" };

/**
 * Folds a route table into one matcher of method and raw (still percent-encoded) path.
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
  const root = createNode();
  const literal = new Map<string, Found>();
  for (const route of routes) {
    const node = insert(root, route);
    if (!route.path.includes(":")) literal.set(route.path, { node, params: {} });
  }

  const service: Match = { kind: "allow", path: "*", access: "public", allow: allowValue(routes) };

  return function match(method: string, path: string): Match {
    if (method === "OPTIONS" && path === ASTERISK) return service;
    const found = literal.get(path) ?? find(root, path);
    if (found === undefined) return NONE;
    const { node: { routes, allow }, params } = found;
    const route = routes.get(method);
    if (route) return { kind: "route", route, params };
    const [other] = routes.values();
    return other ? { kind: "allow", path: other.path, access: other.access, allow } : NONE;
  };
}

function createNode(): Node {
  return { children: new Map(), routes: new Map(), allow: "" };
}

function insert(root: Node, route: Route): Node {
  let node = root;
  for (const segment of route.path.slice(1).split("/")) node = descend(node, segment);
  node.routes.set(route.method, route);
  if (route.method === "GET") node.routes.set("HEAD", route);
  node.allow = allowValue([...node.routes.values()]);
  return node;
}

/** Value of `Allow` for what these routes answer. */
function allowValue(routes: readonly Route[]): string {
  const methods = routes.flatMap(({ method }) => method === "GET" ? ["GET", "HEAD"] : [method]);
  return [...new Set(["OPTIONS", ...methods])].sort().join(", ");
}

function descend(node: Node, segment: string): Node {
  if (segment.startsWith(":")) {
    node.parameter ??= { name: segment.slice(1), node: createNode() };
    return node.parameter.node;
  }
  const child = node.children.get(segment) ?? createNode();
  node.children.set(segment, child);
  return child;
}

function find(root: Node, path: string): Found | undefined {
  let node = root;
  let params: Record<string, string> = {};
  for (const raw of path.slice(1).split("/")) {
    const segment = decode(raw);
    const child = segment === undefined ? undefined : node.children.get(segment);
    if (child !== undefined) {
      node = child;
    } else if (segment && node.parameter) {
      params = { ...params, [node.parameter.name]: segment };
      node = node.parameter.node;
    } else {
      return undefined;
    }
  }
  return { node, params };
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
