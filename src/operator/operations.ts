import { FOR_OPERATORS, openApiDocument } from "../web/openapi.ts";
import { operation } from "../web/operation.ts";
import type { Operation } from "../resource/call.ts";
import type { BodyRules } from "../web/body.ts";
import { ConcurrencyLimit } from "../web/concurrency.ts";
import { jsonResponse, NO_STORE } from "../web/response.ts";
import type { PetStore } from "../pets/pet_store.ts";
import { accountOperations, type AccountStores } from "./account_operations.ts";
import { messageOperations } from "./message_operations.ts";
import { petOperations } from "./pet_operations.ts";

/** What operators' operations work on. */
export interface OperatorStores extends AccountStores {
  readonly pets: PetStore;
}

/** Bounds of a body. */
const RULES: Partial<BodyRules> = { maxBytes: 1024 * 1024 };
/** Maximum number of requests at a time. */
const REQUESTS_AT_ONCE = 8;

/** Operators' operations. They need only the stores, so that a command can also carry them out in its own process. */
export function operatorOperations(stores: OperatorStores): Operation[] {
  return [...accountOperations(stores), ...messageOperations(stores.messages), ...petOperations(stores.pets)];
}

/** Operators' operations as the service offers them: with bounds, and described by a document. */
export function servedOperations(stores: OperatorStores, publicUrl: string | undefined): Operation[] {
  const requests = new ConcurrencyLimit(REQUESTS_AT_ONCE, "operators' requests are being handled");
  const operations: readonly Operation[] = operatorOperations(stores).map((operation) => ({
    ...operation,
    answer: (call) =>
      requests.run(async () =>
        await operation.answer({ ...call, readBody: (rules) => call.readBody({ ...RULES, ...rules }) })
      ),
  }));
  const getDocument = operation(
    {
      id: "getOperatorOpenApi",
      method: "GET",
      path: "/operator/v1/openapi.json",
      access: "operator",
      summary: "Get the OpenAPI document of operators' operations",
    },
    () =>
      jsonResponse(JSON.stringify(openApiDocument(operations, publicUrl ?? "", FOR_OPERATORS)), {
        headers: NO_STORE,
      }),
  );
  return [...operations, getDocument];
}
