import type { Store } from "../engine/mod.ts";
import { operation, Semaphore, valueResponse } from "../web/mod.ts";
import { type Interface, openApiDocument, requiredHeader } from "../web/openapi.ts";
import { ACCESS, ACCESS_ERRORS, INTERFACE, type Operation, PROXY_ERRORS } from "../service/mod.ts";
import { type Catalogue, type Items, ownedItemOperations } from "../resource/mod.ts";
import { ACCOUNT_NOT_FOUND } from "../accounts/account.ts";
import { type AccountStore, OWNERS } from "../accounts/account_store.ts";
import { operatorAccountOperations } from "../accounts/operator_account_operations.ts";
import { operatorChangeOperations } from "../changes/change_operations.ts";
import type { ChangeStore } from "../changes/change_store.ts";
import type { Part } from "./part.ts";

/** The stores that operators' operations use. */
export interface OperatorStores {
  readonly store: Store;
  readonly accounts: AccountStore;
  readonly catalogue: Catalogue;
  /** The optional parts of the service. */
  readonly parts: readonly Part[];
  /** All collections. */
  readonly items: readonly Items[];
  readonly changes: ChangeStore;
}

/** How many requests are handled at a time, and how many wait for how long. */
export const OPERATORS_REQUESTS = {
  capacity: 8,
  maxWaiting: 100,
  maxWaitMs: 5_000,
  what: "operators' requests are being handled",
} as const;
const { capacity, maxWaiting, maxWaitMs } = OPERATORS_REQUESTS;
const AT_ONCE = `At most ${capacity} are handled at a time. Up to ${maxWaiting} more wait for at most ${
  maxWaitMs / 1_000
} seconds.`;

/** Of the 409s, only some that end by themselves have it. */
const RETRY_AFTER = { ...requiredHeader("Seconds to wait before the next request", 21), required: false };

/** Describes the document for operators. */
export function interfaceForOperators(catalogue: Catalogue): Interface {
  return {
    ...INTERFACE,
    ...catalogue.interface,
    original: undefined,
    addedParameters: [],
    path: "/operator/v1",
    title: `${catalogue.title} for operators`,
    summary: "Accounts, plans, usage and items of the service.",
    description:
      `For your own backend. Requests do not count toward any limit. ${AT_ONCE} A body can be at most 1 MiB.
Unknown fields and query parameters get 400. Every error has the same body, \`Error\`. Responses may get
further fields, and errors further codes: ignore those that you do not know. A change takes effect with the next request
of the account, in every process. An API key is shown only once, so operations that return one accept no Idempotency-Key:
it gets 400.`,
    credential:
      "A token of the service's OPERATOR_TOKEN or, for GET and HEAD, OPERATOR_READ_TOKEN, sent as a bearer token",
    allHave: ["X-Request-Id"],
    headers: { ...INTERFACE.headers, "Retry-After": RETRY_AFTER },
    errorsHave: { ...INTERFACE.errorsHave, 409: ["Retry-After"] },
    errors: PROXY_ERRORS,
    error: ACCOUNT_NOT_FOUND,
  };
}

/** Bounds of a body. */
const RULES = { maxBytes: 1024 * 1024 };

/** Operators' operations. They need only the stores, so a command can also run them in its own process. */
export function operatorOperations(stores: OperatorStores): Operation[] {
  const removals = stores.parts.flatMap(({ removal }) => removal ?? []);
  return [
    ...operatorAccountOperations(stores.accounts, { ...stores, removals }),
    ...stores.parts.flatMap(({ operatorOperations }) => operatorOperations?.(stores.store) ?? []),
    ...stores.items.flatMap((items) => ownedItemOperations(items, OWNERS)),
    ...operatorChangeOperations(stores.changes, stores.store),
  ];
}

/**
 * Operators' operations as the service offers them: with bounds, and with a document. `publicUrl` is the prefix of the
 * service's URLs; relative ones have none.
 */
export function servedOperations(stores: OperatorStores, publicUrl: string = ""): Operation[] {
  const requests = new Semaphore(OPERATORS_REQUESTS);
  const operations: readonly Operation[] = operatorOperations(stores).map((operation) => ({
    ...operation,
    errors: [...operation.errors, ...(operation.method === "GET" ? [] : [ACCESS_ERRORS.read_only_token])],
    respond: (call) =>
      requests.run(async () =>
        await operation.respond({ ...call, readBody: (rules) => call.readBody({ ...RULES, ...rules }) })
      ),
  }));
  const getDocument = operation(
    {
      id: "getOperatorOpenApi",
      method: "GET",
      path: "/operator/v1/openapi.json",
      access: ACCESS.operator,
      summary: "Get the OpenAPI document of operators' operations",
    },
    () => valueResponse(openApiDocument(operations, publicUrl, interfaceForOperators(stores.catalogue))),
  );
  return [...operations, getDocument];
}
