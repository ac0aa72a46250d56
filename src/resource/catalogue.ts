import type { Limits } from "../limits/mod.ts";
import type { Resource } from "./resource.ts";

/** The plans of accounts. */
export interface Plans {
  /** The limits of each plan that has fixed ones, in the order of documents. */
  readonly limits: Readonly<Record<string, Limits>>;
  /** The plan of clients that sign up, and of new accounts if their operator names none. */
  readonly signUp: string;
  /** The plan whose accounts each have limits of their own. */
  readonly own: string;
}

/** The name of a service, and its collections, in the order of its documents. */
export interface Catalogue {
  /** The name in texts. The names of metrics and the realm of credentials are derived from it. */
  readonly title: string;
  readonly resources: readonly [Resource, ...Resource[]];
}
