import type { Interface } from "../web/openapi.ts";
import type { KeyPrefixes, Plans } from "../service/mod.ts";
import type { Resource } from "./resource.ts";

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
