import { createResponse, operation } from "../web/mod.ts";
import type { Call, Operation } from "../service/mod.ts";
import { ACCOUNT_NOT_FOUND } from "./account.ts";
import type { AccountStore } from "./account_store.ts";
import { addedKeysOf, KEY_EXISTS, KEY_NOT_FOUND, MAX_ADDED_KEYS, TOO_MANY_KEYS } from "./added_keys.ts";
import { NO_IDEMPOTENCY_KEY, type OperatorSchemas } from "./account_view.ts";
import { createdKey, createdResponse, keysResponse, listedKeys, REVOKED } from "./key_operations.ts";
import { KEY_ID, newKeyOf } from "./key_view.ts";
import { ACCOUNTS_PATH, find, OF_ACCOUNT, open } from "./operated_account.ts";

const PATH = `${ACCOUNTS_PATH}/{id}/keys`;

/** Operators' operations on the added keys of accounts. */
export function operatorKeyOperations(
  accounts: AccountStore,
  { addedKeys: schemas }: OperatorSchemas,
): Operation[] {
  const listKeys = operation(
    {
      ...OF_ACCOUNT,
      id: "listAccountKeys",
      method: "GET",
      path: PATH,
      summary: "List the added keys of an account",
      description: "Also shows keys that have expired since the last addition.",
      answers: listedKeys(schemas),
    },
    async ({ params: { id } }, call: Call) =>
      keysResponse(addedKeysOf((await find(accounts, id, call)).holder)),
  );

  const addKey = operation({
    ...OF_ACCOUNT,
    id: "addAccountKey",
    method: "POST",
    path: PATH,
    summary: "Add a key to an account",
    description:
      `Adds an API key, which is shown only once. An account can have ${MAX_ADDED_KEYS}. Labels of valid keys ` +
      "are unique. So if the response is lost, the same request gets 409 with the `keyId`: revoke that key, and add it " +
      "again.",
    headers: NO_IDEMPOTENCY_KEY,
    body: schemas.addition,
    answers: createdKey(schemas),
    errors: [ACCOUNT_NOT_FOUND, TOO_MANY_KEYS, KEY_EXISTS],
  }, async ({ params: { id }, body }, call: Call) => {
    await find(accounts, id, call, "open ");
    const newKey = newKeyOf(body, call.now);
    const added = open(await call.transact(accounts.addingKey(id, newKey, call.now)), id);
    const { label: _, ...allowed } = newKey;
    call.note(added.key.id);
    call.noteChange({ addedKey: { id: added.key.id, ...allowed } });
    return createdResponse(added);
  });

  const revokeKey = operation({
    ...OF_ACCOUNT,
    id: "revokeAccountKey",
    method: "DELETE",
    path: `${PATH}/{keyId}`,
    summary: "Revoke an added key of an account",
    description: "The key stops working immediately, in every process.",
    confirm: "The key stops working immediately. Continue?",
    params: { ...OF_ACCOUNT.params, keyId: KEY_ID },
    answers: REVOKED,
    errors: [ACCOUNT_NOT_FOUND, KEY_NOT_FOUND],
  }, async ({ params: { id, keyId } }, call: Call) => {
    await find(accounts, id, call, "open ");
    call.note(keyId);
    open(await call.transact(accounts.revokingKey(id, keyId, call.now)), id);
    call.noteChange({ revokedKey: keyId });
    return createResponse(null, { status: 204 });
  });

  return [listKeys, addKey, revokeKey];
}
