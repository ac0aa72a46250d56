import { SUSPENDED, unauthorizedIn, wrongOperatorToken } from "./access/bearer.ts";
import { refusedResponse } from "./access/limit_headers.ts";
import type { Environment } from "./accounts/api_key.ts";
import type { Arrival } from "./arrival.ts";
import { ApiError } from "./http/error.ts";
import { createResponse } from "./http/response.ts";
import type { Call, Route } from "./http/router.ts";
import { createSuggester } from "./suggestion.ts";

/** What answers are made with. */
export interface ResponderOptions {
  readonly routes: readonly Route[];
  /** Whose keys are valid here. */
  readonly environment: Environment;
}

/**
 * Answers a request that has been charged: as its route does, or by telling why no route does.
 *
 * @throws {ApiError}
 * @throws {StoreUnavailable}
 * @throws {Outdated}
 */
export type Responder = (
  arrival: Arrival,
  call: Pick<Call, "checks" | "readBody">,
) => Response | Promise<Response>;

/** Makes what answers requests. */
export function createResponder({ routes, environment }: ResponderOptions): Responder {
  const unauthorized = unauthorizedIn(environment);
  const suggest = createSuggester(routes);

  return function respond(arrival, { checks, readBody }) {
    const { request, base, path, query, now, address, matched, admission } = arrival;
    const { refusal } = admission?.decision ?? {};
    if (admission && refusal) return refusedResponse(admission.decision, refusal);
    switch (matched.kind) {
      case "route": {
        const { route, params } = matched;
        if (route.access === "key" && admission?.account === undefined) {
          if (admission?.isSuspended) return SUSPENDED;
          return unauthorized(request.headers.get("authorization"));
        }
        if (route.access === "operator" && admission !== undefined) return wrongOperatorToken();
        const accountId = admission?.account?.id ?? "";
        return route.handler(request, { params, query, base, now, accountId, checks, address, readBody });
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
