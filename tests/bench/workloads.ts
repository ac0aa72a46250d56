/** The accounts that send requests: one, a hundred in turn, one over its limit, or one that does not exist. */
export type Caller = "one" | "hundred" | "limited" | "stranger";

/** An account that sends requests. */
export interface Account {
  /** Its key for the rivals. */
  readonly key: string;
  /** Maximum number of requests per minute. */
  readonly perMinute: number;
}

/** A request to send repeatedly, and the response to expect. */
export interface Workload {
  readonly name: string;
  readonly caller: Caller;
  readonly connections: number;
  readonly path: string;
  /** Body of a POST request; empty for a GET request. */
  readonly body: string;
  readonly status: number;
  /** Creates per second that another client sends at the same time. */
  readonly creates: number;
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

/** Default number of animals. */
export const ONE_PAGE = 20;

/** Gets the first page. */
export const LIST: Workload = {
  name: "list 20, 1 key",
  caller: "one",
  connections: 64,
  path: "/v1/pets?limit=20",
  body: "",
  status: 200,
  creates: 0,
};

/** Gets the first page with 100 keys in turn. */
export const LIST_FOR_MANY: Workload = {
  ...LIST,
  name: "list 20, 100 keys",
  caller: "hundred",
};

/** Adds an animal. */
export function create(name: string, status: "available" | "sold"): Workload {
  const body = JSON.stringify({ name, categoryId: 1, status });
  return { ...LIST, name: "create", path: "/v1/pets", body, status: 201 };
}

/** Adds an available animal. */
export const CREATE: Workload = create("Umbra", "available");

/** Rows of the table of requests per second. */
export const WORKLOADS: readonly Workload[] = [
  LIST,
  { ...LIST, name: "list 20, 256 connections", connections: 256 },
  LIST_FOR_MANY,
  { ...LIST, name: "get one", path: "/v1/pets/1" },
  CREATE,
  { ...LIST, name: "over the limit (429)", caller: "limited", status: 429 },
  { ...LIST, name: "unknown key (401)", caller: "stranger", status: 401 },
  { ...LIST, name: "list 20, 100 creates a second", creates: 100 },
  { ...LIST, name: "list 20, 300 creates a second", creates: 300 },
];
