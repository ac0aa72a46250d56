/** The accounts that send requests: one, a hundred in turn, one over its limit, or one that does not exist. */
export type Caller = "one" | "hundred" | "limited" | "stranger";

/** An account that sends requests. */
export interface Account {
  /** Its key for the rivals. */
  readonly key: string;
  /** Maximum number of requests per minute. */
  readonly perMinute: number;
}

// The limit is too high to be reached: the benchmark measures counting, not refusing.
const HUNDRED = Array.from(
  { length: 100 },
  (_, index) => ({ key: `key-${index}`, perMinute: 100_000_000 }),
);

/** Accounts of each caller, with the keys for rivals. A checkout of the service creates its own keys. */
export const ACCOUNTS: Readonly<Record<Caller, readonly Account[]>> = {
  one: HUNDRED.slice(0, 1),
  hundred: HUNDRED,
  limited: [{ key: "limited", perMinute: 1 }],
  stranger: [{ key: "stranger", perMinute: 1 }],
};
