import type { Limits } from "../limits/mod.ts";

/** The plans of accounts. */
export interface Plans {
  /** The limits of each plan that has fixed ones, in the order of documents. */
  readonly limits: Readonly<Record<string, Limits>>;
  /** The plan of clients that sign up, and of new accounts if their operator names none. */
  readonly signUp: string;
  /** The plan whose accounts each have limits of their own. */
  readonly own: string;
}
