/** Whose requests they are. */
export type Caller = "one" | "hundred" | "limited" | "stranger";

/** A key, and how many requests a minute it allows. */
export interface Account {
  readonly key: string;
  readonly perMinute: number;
}

/** A request that is sent over and over. */
export interface Work {
  readonly name: string;
  readonly caller: Caller;
  readonly connections: number;
  readonly path: string;
  /** What is posted; empty where something is got. */
  readonly body: string;
  readonly status: number;
}

// A limit out of reach: counting is measured, not refusing.
const HUNDRED = Array.from(
  { length: 100 },
  (_, index) => ({ key: `key-${index}`, perMinute: 100_000_000 }),
);

/** Who stands behind each caller. These are the keys of rivals; the service makes its own. */
export const ACCOUNTS: Readonly<Record<Caller, readonly Account[]>> = {
  one: HUNDRED.slice(0, 1),
  hundred: HUNDRED,
  limited: [{ key: "limited", perMinute: 1 }],
  stranger: [{ key: "stranger", perMinute: 1 }],
};

/** How many animals there are unless it is their number that is measured. */
export const ONE_PAGE = 20;

/** The first page. */
export const LIST: Work = {
  name: "list 20, 1 key",
  caller: "one",
  connections: 64,
  path: "/v1/pets?limit=20",
  body: "",
  status: 200,
};

/** The same for many. */
export const LIST_FOR_MANY: Work = {
  ...LIST,
  name: "list 20, 100 keys",
  caller: "hundred",
};

/** A new animal. */
export function create(name: string, status: "available" | "sold"): Work {
  const body = JSON.stringify({ name, categoryId: 1, status });
  return { ...LIST, name: "create", path: "/v1/pets", body, status: 201 };
}

/** Every work, in the order of the table. */
export const WORKS: readonly Work[] = [
  LIST,
  { ...LIST, name: "list 20, 256 connections", connections: 256 },
  LIST_FOR_MANY,
  { ...LIST, name: "get one", path: "/v1/pets/1" },
  create("Umbra", "available"),
  { ...LIST, name: "over the limit (429)", caller: "limited", status: 429 },
  { ...LIST, name: "unknown key (401)", caller: "stranger", status: 401 },
];
