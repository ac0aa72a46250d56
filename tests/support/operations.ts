// A valid request for every operation.
import { assert } from "@std/assert";
import { ACCESS, needsToken } from "../../src/service/mod.ts";
import { MINUTE } from "../../src/base/mod.ts";
import { accountKey, apiKeyKey } from "../../src/accounts/account.ts";
import { withAddedKeys } from "../../src/accounts/added_keys.ts";
import { OWNERS } from "../../src/accounts/account_store.ts";
import { encodeUsage, UNUSED, usageKey } from "../../src/limits/usage.ts";
import type { DeclaredOperation } from "../../src/web/operation.ts";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { encodeJson, Transactions, Versions } from "../../src/engine/mod.ts";
import { type Catalogue, itemOperations, Items, ownedItemOperations } from "../../src/resource/mod.ts";
import { OWN } from "../catalogue/operations.ts";
import type { HarnessRequest } from "./client.ts";
import { OPERATOR_TOKEN } from "./desk.ts";
import { switchFeed } from "./feed.ts";
import { Harness, type HarnessOptions } from "./harness.ts";
import { HAMMER, OF_THINGS, THINGS } from "./things.ts";

/** Your own collections, if your parts have operations. */
const RESOURCES = Object.keys(OWN).length > 0 ? CATALOGUE.resources : [];

/** Options of a service with every operation but those that are derived from your own collections. */
export const ALL: HarnessOptions & { readonly catalogue: Catalogue; readonly operatorToken: string } = {
  catalogue: { ...OF_THINGS, resources: [THINGS, ...RESOURCES] },
  operatorToken: OPERATOR_TOKEN,
  securityContact: "mailto:security@things.example",
};

/** A valid request of an account that has added a thing with the ID 1. */
export interface Good {
  /** Parameters in its path; by default the ID of the thing or of an open account. */
  readonly params?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  /** Creates what the request of an account needs beside that, at no charge to it. */
  readonly seed?: (service: Harness, accountId: string) => Promise<unknown>;
  /** What brings about each error that the operation alone declares, by code; by default, that nothing is seeded. */
  readonly errors?: Readonly<Record<string, (service: Harness, accountId: string) => Promise<unknown>>>;
  /** Expected status; by default 200. */
  readonly status?: number;
  /** Tables that it changes, except counts of requests; by default none. */
  readonly changes?: readonly string[];
}

/** An operation and a valid request. */
export interface Sample extends Required<Pick<Good, "status" | "changes" | "errors">> {
  readonly operation: DeclaredOperation;
  /** Such as `GET /v1/things/1`. */
  readonly target: string;
  readonly request: HarnessRequest;
}

/** By ID of the operation. */
export const GOOD: Readonly<Record<string, Good>> = {
  listThings: {},
  createThing: { json: HAMMER, status: 201, changes: ["items", "items_by", "versions"] },
  getThing: {},
  updateThing: { json: { name: "Tom" }, changes: ["items", "items_by", "versions"] },
  deleteThing: { status: 204, changes: ["items", "items_by", "versions"] },
  listChanges: { seed: (service) => switchFeed(service) },
  getDeprecations: {},
  createMessage: { json: { message: "Hello" }, status: 202, changes: ["messages", "messages_waiting"] },
  createAccount: {
    json: { name: "me" },
    status: 201,
    changes: ["accounts", "api_keys", "sign_ups", "sign_ups_by_day", "sign_ups_by_hour"],
  },
  getAccount: {},
  closeAccount: { status: 204, changes: ["accounts", "versions"] },
  rotateKey: { json: { graceSeconds: 60 }, status: 201, changes: ["accounts", "api_keys", "versions"] },
  listKeys: {},
  addKey: { json: { label: "Dashboard" }, status: 201, changes: ["accounts", "api_keys", "versions"] },
  revokeKey: { seed: addKnownKey, status: 204, changes: ["accounts", "api_keys", "versions"] },
  getUsage: {},
  getOpenApi: {},
  getSecurity: {},
  getRobots: {},
  getIcon: {},
  getFavicon: {},
  getPage: {},
  getChanges: {},
  getGuide: {},
  getLlms: {},
  getOperatorsPage: {},
  redirectToOperatorsPage: { status: 308 },
  getHealth: {},
  getReadiness: {},
  getMetrics: {},
  ...OWN,
};

/** An open account, which operators' valid requests are about. */
export const OPEN = "acct_0000000000000001";
/** A closed account, which the valid request of `deleteAccount` is about. */
export const CLOSED = "acct_0000000000000002";
/** ID of the added key that valid requests revoke. */
const KEY = "key_0000000000000001";
const PARAMS = { thingId: "1", id: OPEN, keyId: KEY };

/** Operators' operations by ID. */
export const GOOD_FOR_OPERATORS: Readonly<Record<string, Good>> = {
  ...OWN,
  listAccounts: {},
  createAccount: {
    json: { name: "me", reference: "7", plan: "pro" },
    status: 201,
    changes: ["account_references", "accounts", "api_keys"],
  },
  createAccounts: {
    json: { accounts: [{ name: "me" }, { name: "you" }] },
    changes: ["accounts", "api_keys"],
  },
  getAccount: {},
  getAccountUsage: {},
  updateAccount: { json: { suspended: true }, changes: ["accounts", "versions"] },
  rotateAccountKey: { json: { graceSeconds: 0 }, status: 201, changes: ["accounts", "api_keys", "versions"] },
  listAccountKeys: {},
  addAccountKey: { json: { label: "Dashboard" }, status: 201, changes: ["accounts", "api_keys", "versions"] },
  revokeAccountKey: {
    seed: (service) => addKnownKey(service, OPEN),
    status: 204,
    changes: ["accounts", "api_keys", "versions"],
  },
  unbanAccount: { changes: ["accounts", "versions"] },
  resetAccount: { changes: ["accounts", "versions"] },
  closeAccount: { changes: ["accounts", "versions"] },
  applyPlans: {},
  deleteAccount: { params: { id: CLOSED }, status: 204, changes: ["accounts", "api_keys", "versions"] },
  listMessages: {},
  removeMessages: { json: { ids: ["msg_1"] }, status: 204 },
  listOwnedThings: {},
  createOwnedThing: {
    json: { ...HAMMER, accountId: OPEN },
    status: 201,
    changes: ["items", "items_by", "versions"],
  },
  updateOwnedThing: { json: { name: "Tom" }, changes: ["items", "items_by", "versions"] },
  deleteOwnedThing: { status: 204, changes: ["items", "items_by", "versions"] },
  listChanges: {},
  switchChanges: { json: { days: 7 }, changes: ["schema"] },
  getOperatorOpenApi: {},
  getOperatorsForms: {},
};

/**
 * Creates what valid requests of an account are about: one that is open, one that was closed then, and what they seed.
 */
export async function addKnownAccounts(
  service: Harness,
  accountId: string = OPEN,
  ended: number | null = service.now - MINUTE,
): Promise<void> {
  for (const [id, closedAt] of [[OPEN, null], [CLOSED, ended]] as const) {
    const { account } = await service.createAccount();
    await service.kv.set(accountKey(id), encodeJson({ ...account, id, closedAt }));
    await service.kv.set(usageKey(id), encodeUsage(UNUSED));
  }
  for (const { seed } of new Set([GOOD, GOOD_FOR_OPERATORS].flatMap(Object.values<Good>))) {
    await seed?.(service, accountId);
  }
}

/** Gives an account the added key that valid requests revoke. */
async function addKnownKey(service: Harness, accountId: string): Promise<void> {
  const account = (await service.accounts.find(accountId))?.holder;
  assert(account);
  const hash = `hash of a key of ${accountId}`;
  const key = { id: KEY, label: "Till", scope: "read", hash, createdAt: service.now };
  await service.kv.set(accountKey(accountId), encodeJson(withAddedKeys(account, [key])));
  await service.kv.set(apiKeyKey(hash), encodeJson(accountId));
}

await using service = await Harness.open(ALL);

/** IDs of the operations that are derived from your own collections, which tests of things cover. */
const DERIVED = new Set(
  RESOURCES.flatMap((resource) => {
    const { store } = service;
    const transactions = new Transactions(store, () => service.now);
    const items = new Items(resource, {
      store,
      transactions,
      versions: new Versions(store),
      resources: RESOURCES,
    });
    return [
      ...itemOperations(items, { publicUrl: undefined, maxBytes: 0 }),
      ...ownedItemOperations(items, OWNERS),
    ];
  }).map(({ id }) => id),
);

/** Every other operation, with a valid request. */
export const SAMPLES: readonly Sample[] = service.app.operations.filter(({ id }) => !DERIVED.has(id)).map(
  (operation) => {
    const { id, method, path, access } = operation;
    const { json, params, status = 200, changes = [], errors = {} } =
      (access === ACCESS.operator ? GOOD_FOR_OPERATORS : GOOD)[id] ?? {};
    const all = new Map(Object.entries({ ...PARAMS, ...params }));
    const target = `${method} ${path.replaceAll(/\{(\w+)\}/g, (_, name) => all.get(name) ?? "")}`;
    return { operation, target, request: json === undefined ? {} : { json }, status, changes, errors };
  },
);

/** The credentials of a valid request. `key` belongs to the account. */
export function credentialFor(
  { access }: Pick<DeclaredOperation, "access">,
  key: string,
): Pick<HarnessRequest, "key"> {
  if (access === ACCESS.key) return { key };
  return needsToken(access) ? { key: ALL.operatorToken } : {};
}
