/**
 * What a declaration in `catalogue/` imports: collections, schemas, rules and hooks, errors, plans and identity.
 *
 * @module
 */
export { decodeJson, encodeJson, type Entry, type Rows, type Write } from "./engine/mod.ts";
export { ApiError, type ErrorKind, invalidRequest } from "./web/mod.ts";
export {
  boolean,
  date,
  int64,
  integer,
  list,
  named,
  nameText,
  nullable,
  object,
  oneOf,
  optional,
  text,
  timestamp,
} from "./web/schema.ts";
export type { Identity, Plans } from "./service/mod.ts";
export {
  type Catalogue,
  type Change,
  createdAt,
  exists,
  type Hook,
  type ItemOf,
  ofService,
  type Resource,
  resource,
  type RowCounts,
  type Rule,
  unique,
  updatedAt,
} from "./resource/mod.ts";
