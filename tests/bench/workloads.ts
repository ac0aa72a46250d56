import { ITEM, PATH, textField } from "../process/shipped.ts";

/** A request to send repeatedly, and the response to expect. */
export interface Workload {
  readonly name: string;
  /** Number of accounts that send it in turn; 0 for a key that no account has. */
  readonly accounts: number;
  /** Maximum number of requests of an account per minute. */
  readonly perMinute: number;
  readonly connections: number;
  /** Number of items at the start. */
  readonly items: number;
  readonly method: "GET" | "POST" | "PATCH";
  readonly path: string;
  /** The bodies to send in turn, each a line; empty for a GET request. */
  readonly body: string;
  /** Whether requests have an If-None-Match with the ETag of the first response. */
  readonly isConditional: boolean;
  readonly status: number;
  /** Creates per second that another client sends at the same time. */
  readonly creates: number;
}

/** Gets the first page. */
const LIST: Workload = {
  name: "list 20, 1 key",
  accounts: 1,
  // Too high to be reached: the benchmark measures counting, not refusing.
  perMinute: 100_000_000,
  connections: 64,
  items: 20,
  method: "GET",
  path: `${PATH}?limit=20`,
  body: "",
  isConditional: false,
  status: 200,
  creates: 0,
};

/** Adds an item. */
export const CREATE: Workload = {
  ...LIST,
  ...{ name: "create one", method: "POST", path: PATH, body: ITEM, status: 201 },
};

const CHANGES = ["Bench 1", "Bench 2"].map((text) => JSON.stringify({ [textField(text)]: text })).join("\n");

/** Changes an item, and back. */
const PATCH: Workload = {
  ...LIST,
  ...{ name: "PATCH one", method: "PATCH", path: `${PATH}/1`, body: CHANGES },
};

/** Rows of the table of requests per second. */
export const WORKLOADS: readonly Workload[] = [
  LIST,
  { ...LIST, name: "list 20, 256 connections", connections: 256 },
  { ...LIST, name: "list 20, 1 connection", connections: 1 },
  { ...LIST, name: "list 20, 100 keys", accounts: 100 },
  { ...LIST, name: "list 20, 10,000 keys", accounts: 10_000 },
  { ...LIST, name: "list 20 of 100,000", items: 100_000 },
  { ...LIST, name: "get one", path: `${PATH}/1` },
  { ...LIST, name: "unchanged list (304)", isConditional: true, status: 304 },
  CREATE,
  { ...CREATE, name: "create one, 1 connection", connections: 1 },
  { ...PATCH, connections: 1, name: "PATCH one, 1 connection" },
  { ...LIST, name: "over the limit (429)", perMinute: 1, status: 429 },
  { ...LIST, name: "unknown key (401)", accounts: 0, status: 401 },
  { ...LIST, name: "list 20, 100 creates a second", creates: 100 },
  { ...LIST, name: "list 20, 300 creates a second", creates: 300 },
];
