import type { Match } from "./http/router.ts";

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
  readonly matched: Match | typeof BAD_HOST;
  readonly address: () => string;
}

/** What paths with limits begin with. */
export const BASE_PATH = "/v1";
/** Without a valid Host there is no telling what the path is. */
export const BAD_HOST = { kind: "bad host" } as const;

/** The route's pattern; empty where the path matches none. */
export function patternOf(matched: Arrival["matched"]): string {
  if (matched.kind === "route") return matched.route.path;
  return matched.kind === "allow" ? matched.path : "";
}

/** Pages in a browser have no business at what is the operator's. */
export function isForOperator(matched: Arrival["matched"]): boolean {
  if (matched.kind === "route") return matched.route.access === "operator";
  return matched.kind === "allow" && matched.access === "operator";
}

/** Whether the response tells of limits. */
export function isVersioned({ matched, path }: Arrival): boolean {
  const place = patternOf(matched) || path;
  return matched === BAD_HOST || place === BASE_PATH || place.startsWith(`${BASE_PATH}/`);
}
