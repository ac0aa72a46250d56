import { createResponse, type DeclaredOperation, operation, valueResponse } from "../web/mod.ts";
import type { Parsed } from "../web/schema.ts";
import type { Call, Operation } from "../service/mod.ts";
import { KEY_ADDITIONS_LIMIT, MAX_ADDITIONS } from "./account.ts";
import type { AccountStore, Added } from "./account_store.ts";
import {
  type AddedKey,
  addedKeysOf,
  KEY_EXISTS,
  KEY_NOT_FOUND,
  MAX_ADDED_KEYS,
  TOO_MANY_KEYS,
} from "./added_keys.ts";
import { type ClientSchemas, NO_IDEMPOTENCY_KEY } from "./account_view.ts";
import { keyHashIn } from "./bearer.ts";
import { KEY_ID, type KeySchemas, keyViewOf, newKeyOf } from "./key_view.ts";

/** Maximum number of revocations of an account in an hour that are served although its limits refuse them. */
export const SPARED_REVOCATIONS = 30;

/** Options of {@linkcode addedKeyOperations}. */
export interface AddedKeyOptions {
  readonly common: Pick<DeclaredOperation, "access" | "tag" | "isExtension">;
  readonly path: string;
  /** Returns what was found. @throws {ApiError} `invalid_api_key` */
  readonly known: <Found>(found: Found | null) => Found;
}

/** A client's operations on the added keys of its account. */
export function addedKeyOperations(
  accounts: AccountStore,
  { addedKeys: schemas }: ClientSchemas,
  { common, path, known }: AddedKeyOptions,
): Operation[] {
  const listKeys = operation(
    {
      ...common,
      id: "listKeys",
      method: "GET",
      path,
      scope: "manage",
      summary: "List the added keys",
      description: "Also shows keys that have expired since the last addition.",
      answers: listedKeys(schemas),
    },
    async (_input, { accountId }: Call) =>
      keysResponse(addedKeysOf(known(await accounts.find(accountId)).holder)),
  );

  const addKey = operation({
    ...common,
    id: "addKey",
    method: "POST",
    path,
    scope: "manage",
    summary: "Add a key",
    description:
      `Adds an API key, which is shown only once and shares the limits of the account: at most ${MAX_ADDED_KEYS} at a ` +
      `time, and ${MAX_ADDITIONS} per UTC hour. A key that is being replaced cannot add any. If the response is lost, ` +
      "the same request gets 409 `key_exists`. An Idempotency-Key is rejected.",
    headers: NO_IDEMPOTENCY_KEY,
    body: schemas.addition,
    answers: createdKey(schemas),
    errors: [TOO_MANY_KEYS, KEY_EXISTS, KEY_ADDITIONS_LIMIT],
  }, async ({ body }, { request, accountId, now, transact }: Call) => {
    const adding = accounts.addingKey(accountId, newKeyOf(body, now), now, keyHashIn(request));
    return createdResponse(known(await transact(adding)));
  });

  const revokeKey = operation({
    ...common,
    id: "revokeKey",
    method: "DELETE",
    path: `${path}/{keyId}`,
    scope: "manage",
    sparedPerHour: SPARED_REVOCATIONS,
    summary: "Revoke an added key",
    description:
      `The key stops working immediately. An account can send this ${SPARED_REVOCATIONS} times per UTC hour, even if its ` +
      "limits are used up or it is banned; then nothing is charged.",
    confirm: "The key stops working immediately. Continue?",
    params: { keyId: KEY_ID },
    answers: REVOKED,
    errors: [KEY_NOT_FOUND],
  }, async ({ params: { keyId } }, { request, accountId, now, transact }: Call) => {
    known(await transact(accounts.revokingKey(accountId, keyId, now, keyHashIn(request))));
    return createResponse(null, { status: 204 });
  });

  return [listKeys, addKey, revokeKey];
}

/** The answers of an operation that lists added keys. */
export function listedKeys({ keys }: KeySchemas) {
  return { 200: { description: "The added keys, oldest first", body: keys, headers: ["Cache-Control"] } };
}

/** The answers of an operation that adds a key. */
export function createdKey({ created }: KeySchemas) {
  return { 201: { description: "The key and its API key", body: created, headers: ["Cache-Control"] } };
}

/** The answers of an operation that revokes an added key. */
export const REVOKED = { 204: { description: "The key was revoked" } } as const;

/** The 200 with added keys. */
export function keysResponse(keys: readonly AddedKey[]): Response {
  return valueResponse<Parsed<KeySchemas["keys"]>>(keys.map(keyViewOf));
}

/** The 201 with a key that was added. */
export function createdResponse({ key, apiKey }: Added): Response {
  return valueResponse<Parsed<KeySchemas["created"]>>({ ...keyViewOf(key), apiKey }, { status: 201 });
}
