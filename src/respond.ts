import { SUSPENDED, unauthorizedIn, wrongOperatorToken } from "./admission/bearer.ts";
import { refusedResponse } from "./admission/limit_headers.ts";
import type { Environment } from "./accounts/api_key.ts";
import type { Call, Operation } from "./api/operation.ts";
import type { Arrival } from "./arrival.ts";
import { ApiError } from "./http/error.ts";
import { createResponse } from "./http/response.ts";
import { createSuggester } from "./suggestion.ts";

/** What answers are made with. */
export interface ResponderOptions {
  readonly operations: readonly Operation[];
  /** Whose keys are valid here. */
  readonly environment: Environment;
}

/**
 * Answers a request that has been charged: as its operation does, or by telling why none does.
 *
 * @throws {ApiError}
 * @throws {StoreUnavailable}
 * @throws {Outdated}
 */
export type Responder = (
  arrival: Arrival,
  call: Pick<Call, "transact" | "readBody">,
) => Response | Promise<Response>;

/** Makes what answers requests. */
export function createResponder({ operations, environment }: ResponderOptions): Responder {
  const unauthorized = unauthorizedIn(environment);
  const suggest = createSuggester(operations);

  return function respond(arrival, { transact, readBody }) {
    const { request, base, path, query, now, address, matched, admission } = arrival;
    const { refusal } = admission?.decision ?? {};
    if (admission && refusal) return refusedResponse(admission.decision, refusal);
    switch (matched.kind) {
      case "found": {
        const { endpoint: operation, params } = matched;
        if (operation.access === "key" && admission?.account === undefined) {
          if (admission?.isSuspended) return SUSPENDED;
          return unauthorized(request.headers.get("authorization"));
        }
        if (operation.access === "operator" && admission !== undefined) return wrongOperatorToken();
        const accountId = admission?.account?.id ?? "";
        return operation.answer({
          request,
          params,
          query,
          base,
          now,
          accountId,
          transact,
          address,
          readBody,
        });
      }
      case "allow": {
        const { allow } = matched;
        if (request.method === "OPTIONS") return createResponse(null, { status: 204, headers: { allow } });
        throw new ApiError("method_not_allowed", `Allowed methods: ${allow}.`, { allow });
      }
      case "none": {
        const meant = suggest(path);
        const question = meant === undefined ? "" : ` Did you mean ${meant}?`;
        throw new ApiError("not_found", `There is nothing at this path.${question}`);
      }
      case "bad host":
        throw new ApiError(
          "invalid_request",
          "The Host header must be a host name or address, and a port or none.",
        );
    }
  };
}
