import { createResponse, operation, type Tag, valueResponse } from "../web/mod.ts";
import type { Parsed } from "../web/schema.ts";
import { ACCESS, type Call, type Operation } from "../service/mod.ts";
import { MAX_ROTATIONS, previousKeyExpiry, ROTATION_LIMIT } from "./account.ts";
import type { AccountStore } from "./account_store.ts";
import {
  type ClientSchemas,
  NO_IDEMPOTENCY_KEY,
  OF_DAYS,
  ownViewOf,
  rotation,
  type USAGE_DAYS,
  viewOf,
} from "./account_view.ts";
import { invalidApiKey } from "./api_key.ts";
import { keyHashIn } from "./bearer.ts";
import { addedKeyOperations } from "./key_operations.ts";
import { keptKeysOf, usedKeyOf } from "./key_view.ts";

/** Operations on the account of an API key. */
export const ACCOUNT_TAG: Tag = {
  name: "Account",
  description: "The account of an API key: its limits, usage and keys",
};
const PATH = "/v1/account";
const COMMON = { access: ACCESS.key, tag: ACCOUNT_TAG, isExtension: true } as const;
/** Default time that the previous key stays valid after a rotation, in seconds. */
export const GRACE_SECONDS = 60;
const KEY_ROTATION = rotation(
  "KeyRotation",
  { max: 7 * 86_400, usual: GRACE_SECONDS, example: 3_600 },
  "How many seconds this request's key stays valid; 0 if the key has leaked",
);

/** A client's operations on its own account. `realm` is the name of the service in challenges. */
export function accountOperations(
  accounts: AccountStore,
  schemas: ClientSchemas,
  realm: string,
): Operation[] {
  /** What was found. @throws {ApiError} `invalid_api_key` */
  function known<Found>(found: Found | null): Found {
    if (found === null) throw invalidApiKey(realm);
    return found;
  }

  const getAccount = operation(
    {
      ...COMMON,
      id: "getAccount",
      method: "GET",
      path: PATH,
      isUnrestricted: true,
      summary: "Get the account, its limits and usage",
      answers: { 200: { description: "The account", body: schemas.ownAccount, headers: ["Cache-Control"] } },
    },
    async (_input, { request, accountId, now }: Call) => {
      const state = known(await accounts.find(accountId));
      const key = usedKeyOf(state.holder, keyHashIn(request), now);
      if (key === undefined) throw invalidApiKey(realm);
      return valueResponse<Parsed<ClientSchemas["ownAccount"]>>({ ...ownViewOf(viewOf(state, now)), key });
    },
  );

  const closeAccount = operation({
    ...COMMON,
    id: "closeAccount",
    method: "DELETE",
    path: PATH,
    scope: "manage",
    summary: "Close the account",
    description: "Closes the account permanently. Its API keys stop working; its items stay.",
    confirm: "This closes your account permanently. Continue?",
    endsKey: true,
    answers: { 204: { description: "The account was closed" } },
  }, async (_input, { accountId, now, transact }: Call) => {
    known(await transact(accounts.changing(accountId, () => ({ closedAt: now }))));
    return createResponse(null, { status: 204 });
  });

  const getUsage = operation(
    {
      ...COMMON,
      id: "getUsage",
      method: "GET",
      path: `${PATH}/usage`,
      isUnrestricted: true,
      summary: "Get usage per day",
      description: "Returns one entry per day (UTC), starting with today.",
      ...OF_DAYS,
    },
    async ({ query: { days } }, { accountId, now }: Call) =>
      valueResponse<Parsed<typeof USAGE_DAYS>>(
        await accounts.usagePerDay(known(await accounts.find(accountId)), days, now),
      ),
  );

  const ofKeys = addedKeyOperations(accounts, schemas, { common: COMMON, path: `${PATH}/keys`, known });
  // Importers send the requests of a document in its order, with one key: one that was rotated can add no keys.
  return [getAccount, ...ofKeys, rotateKey(accounts, schemas, known), getUsage, closeAccount];
}

function rotateKey(
  accounts: AccountStore,
  schemas: ClientSchemas,
  known: <Found>(found: Found | null) => Found,
): Operation {
  return operation({
    ...COMMON,
    id: "rotateKey",
    method: "POST",
    path: `${PATH}/key`,
    scope: "manage",
    summary: "Rotate the API key",
    description: "Creates a new first key. The key of this request stays valid for `graceSeconds`, " +
      `${GRACE_SECONDS} by default. So if the response is lost, you can send the request again with the same key. The ` +
      "lost key then stops working, and the grace period starts again. Added keys stay, and the response lists them. If a " +
      "key has leaked, set `graceSeconds` to 0: every earlier key and every added one stops working immediately. With a " +
      "grace, the old key can still rotate, so a thief keeps access. If the response to 0 is lost, only the operator can " +
      `make a new key. A rotation does not reset usage. An account can rotate its key ${MAX_ROTATIONS} times per UTC hour, even if ` +
      "its limits are used up or it is banned; then nothing is charged. An Idempotency-Key is rejected.",
    confirm:
      "This makes a new key, and your key stops working soon. If graceSeconds is 0, it stops working now, and " +
      "so do added keys. Continue?",
    endsKey: true,
    headers: NO_IDEMPOTENCY_KEY,
    body: KEY_ROTATION,
    bodyIsOptional: true,
    sparedPerHour: MAX_ROTATIONS,
    answers: {
      201: { description: "The new API key", body: schemas.rotatedKey, headers: ["Cache-Control"] },
    },
    errors: [ROTATION_LIMIT],
  }, async ({ body: { graceSeconds } }, { request, accountId, now, transact }: Call) => {
    const rotating = accounts.rotating(accountId, graceSeconds * 1_000, now, keyHashIn(request));
    const { account, apiKey } = known(await transact(rotating));
    const previousKeyExpiresAt = previousKeyExpiry(account, now);
    const addedKeys = keptKeysOf(account, now);
    return valueResponse<Parsed<ClientSchemas["rotatedKey"]>>({ apiKey, previousKeyExpiresAt, addedKeys }, {
      status: 201,
    });
  });
}
