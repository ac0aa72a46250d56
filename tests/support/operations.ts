// A valid request for every operation.
import { ACCESS, needsToken } from "../../src/service/mod.ts";
import { MINUTE } from "../../src/base/mod.ts";
import { accountKey } from "../../src/accounts/account.ts";
import { encodeUsage, UNUSED, usageKey } from "../../src/limits/usage.ts";
import type { DeclaredOperation } from "../../src/web/operation.ts";
import { encodeJson } from "../../src/engine/row.ts";
import { OWN } from "../catalogue/operations.ts";
import type { HarnessRequest } from "./client.ts";
import { OPERATOR_TOKEN } from "./desk.ts";
import { Harness, type HarnessOptions } from "./harness.ts";
import { HAMMER } from "./things.ts";

/** Options of a service with every operation. */
export const ALL: HarnessOptions & { readonly operatorToken: string } = {
  operatorToken: OPERATOR_TOKEN,
  securityContact: "mailto:security@things.example",
};

/** A valid request of an account that has added a thing with the ID 1. */
export interface Good {
  /** Parameters in its path; by default the ID of the thing or of an open account. */
  readonly params?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  /** Creates what the request needs beside that. */
  readonly seed?: (service: Harness) => Promise<unknown>;
  /** Expected status; by default 200. */
  readonly status?: number;
  /** Tables that it changes, except counts of requests; by default none. */
  readonly changes?: readonly string[];
}

/** An operation and a valid request. */
export interface Sample extends Required<Pick<Good, "status" | "changes">> {
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
  getUsage: {},
  getOpenApi: {},
  getSecurity: {},
  getRobots: {},
  getIcon: {},
  getFavicon: {},
  getPage: {},
  getChanges: {},
  getHealth: {},
  getReadiness: {},
  getMetrics: {},
  ...OWN,
};

const OPEN = "acct_0000000000000001";
/** A closed account, which the valid request of `deleteAccount` is about. */
export const CLOSED = "acct_0000000000000002";
const PARAMS = { thingId: "1", id: OPEN };

/** Operators' operations by ID. */
export const GOOD_FOR_OPERATORS: Readonly<Record<string, Good>> = {
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
  getOperatorOpenApi: {},
};

/** Creates what valid requests are about: an account that is open, one that was closed then, and what they seed. */
export async function addKnownAccounts(
  service: Harness,
  ended: number | null = service.now - MINUTE,
): Promise<void> {
  for (const [id, closedAt] of [[OPEN, null], [CLOSED, ended]] as const) {
    const { account } = await service.createAccount();
    await service.kv.set(accountKey(id), encodeJson({ ...account, id, closedAt }));
    await service.kv.set(usageKey(id), encodeUsage(UNUSED));
  }
  for (const { seed } of [...Object.values(GOOD), ...Object.values(GOOD_FOR_OPERATORS)]) {
    await seed?.(service);
  }
}

await using service = await Harness.open(ALL);

/** Every operation of the service, with a valid request. */
export const SAMPLES: readonly Sample[] = service.app.operations.map((operation) => {
  const { id, method, path, access } = operation;
  const { json, params, status = 200, changes = [] } =
    (access === ACCESS.operator ? GOOD_FOR_OPERATORS : GOOD)[id] ?? {};
  const all = new Map(Object.entries({ ...PARAMS, ...params }));
  const target = `${method} ${path.replaceAll(/\{(\w+)\}/g, (_, name) => all.get(name) ?? "")}`;
  return { operation, target, request: json === undefined ? {} : { json }, status, changes };
});

/** The credentials of a valid request. `key` belongs to the account. */
export function credentialFor(
  { access }: Pick<DeclaredOperation, "access">,
  key: string,
): Pick<HarnessRequest, "key"> {
  if (access === ACCESS.key) return { key };
  return needsToken(access) ? { key: ALL.operatorToken } : {};
}
