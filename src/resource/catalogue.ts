import type { Interface } from "../web/openapi.ts";
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

/** What API keys begin with. */
export interface KeyPrefixes {
  /** The prefix of new keys: `my`, for `my_live_` and `my_test_`. */
  readonly keyPrefix: string;
  /** Prefixes of keys that were issued before, which stay valid. */
  readonly formerKeyPrefixes: readonly string[];
}

/** What a service offers, and to whom. */
export interface Catalogue extends KeyPrefixes {
  /** The name in texts. The names of metrics and the realm of credentials are derived from it. */
  readonly title: string;
  /** The collections, in the order of documents. */
  readonly resources: readonly [Resource, ...Resource[]];
  readonly plans: Plans;
  /** What documents say about the interface as a whole. */
  readonly interface: Pick<Interface, "version" | "original" | "contact" | "license">;
}
