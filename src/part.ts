/**
 * What a part in `catalogue/parts/` imports, beside `declare.ts`: operations, their callers and responses, and
 * transactions.
 *
 * @module
 */
export { type Store, type Transaction, versionstampOf } from "./engine/mod.ts";
export { createResponse, ERRORS, NO_STORE, operation, valueResponse } from "./web/mod.ts";
export { IDEMPOTENCY_KEY } from "./web/headers.ts";
export { stringifyJson } from "./web/schema.ts";
export { ACCESS, type Acting, type Call, type Operation } from "./service/mod.ts";
export {
  createOnce,
  type Creation,
  type Items,
  type ItemsIn,
  of,
  once,
  type Owned,
  type Reply,
} from "./resource/mod.ts";
export type { Part, PartOptions } from "./operator/part.ts";
