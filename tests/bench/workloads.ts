import { stringifyJson } from "../../src/web/json.ts";
import type { Caller } from "./accounts.ts";
import { COLLECTION, type Collection } from "./collection.ts";

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

/** Default number of items. */
export const ONE_PAGE = 20;

/** Gets the first page. */
export const LIST: Workload = {
  name: "list 20, 1 key",
  caller: "one",
  connections: 64,
  path: `${COLLECTION.path}?limit=20`,
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

/** Adds an item. */
export function create(item: Collection["item"]): Workload {
  return { ...LIST, name: "create", path: COLLECTION.path, body: stringifyJson(item), status: 201 };
}

/** Adds the usual item. */
export const CREATE: Workload = create(COLLECTION.item);

/** Rows of the table of requests per second. */
export const WORKLOADS: readonly Workload[] = [
  LIST,
  { ...LIST, name: "list 20, 256 connections", connections: 256 },
  LIST_FOR_MANY,
  { ...LIST, name: "get one", path: `${COLLECTION.path}/1` },
  CREATE,
  { ...LIST, name: "over the limit (429)", caller: "limited", status: 429 },
  { ...LIST, name: "unknown key (401)", caller: "stranger", status: 401 },
  { ...LIST, name: "list 20, 100 creates a second", creates: 100 },
  { ...LIST, name: "list 20, 300 creates a second", creates: 300 },
];
