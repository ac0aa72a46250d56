/** A request's path, still percent-encoded, and its query string with the leading `?`, or empty. */
export interface Target {
  readonly path: string;
  readonly query: string;
}

/**
 * Takes the path and query out of a request's absolute URL, at a fraction of the cost of `new URL`.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(targetOf("http://localhost:8000/v1/pets?limit=1"), { path: "/v1/pets", query: "?limit=1" });
 * ```
 */
export function targetOf(url: string): Target {
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const path = start === -1 ? "/" : url.slice(start);
  const mark = path.indexOf("?");
  return mark === -1 ? { path, query: "" } : { path: path.slice(0, mark), query: path.slice(mark) };
}
