/**
 * What all parts of the service share: who may call an operation, with which keys, and its errors, the call that a
 * handler gets, headers and paths of the interface, the plans and the identity that a catalogue declares, and limits on
 * other things than requests.
 *
 * @module
 */
export { ACCESS, ACCESS_ERRORS, needsToken, PROXY_ERRORS, STOPPING, UNAVAILABLE } from "./access.ts";
export { BASE62, randomBase62 } from "./base62.ts";
export type { Acting, Call, Changed, Operation } from "./call.ts";
export type { Environment, Identity, KeyPrefixes } from "./identity.ts";
export { ADDED_PARAMETERS, BASE_PATH, EXAMPLE_ACCOUNT_ID, INTERFACE } from "./interface.ts";
export { limitHeaders, type LimitOf, type OwnLimit, UsedUp, usedUp } from "./own_limit.ts";
export type { Plans } from "./plans.ts";
export { insufficientScope, KEY_SCOPE, KEY_SCOPES, type KeyScope, requireScope } from "./scope.ts";
export { LIMIT_HEADER_NAMES, MAX_ID_LENGTH, SERVICE_HEADERS } from "./response_headers.ts";
