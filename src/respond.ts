import { SUSPENDED, unauthorized, wrongOperatorToken } from "./access/bearer.ts";
import { refusedResponse } from "./access/limit_headers.ts";
import type { Arrival } from "./arrival.ts";
import { ApiError } from "./http/error.ts";
import { createResponse } from "./http/response.ts";
import type { Call } from "./http/router.ts";

/**
 * Answers a request that has been charged: as its route does, or by telling why no route does.
 *
 * @throws {ApiError}
 * @throws {StoreUnavailable}
 * @throws {Outdated}
 */
export function respond(
  { request, base, query, now, address, matched, admission }: Arrival,
  { checks, readBody }: Pick<Call, "checks" | "readBody">,
): Response | Promise<Response> {
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
      throw new ApiError("method_not_allowed", `This path answers ${allow}.`, { allow });
    }
    case "none":
      throw new ApiError("not_found", "There is nothing at this path.");
    case "bad host":
      throw new ApiError(
        "invalid_request",
        "The Host header must be a host name or address, and a port or none.",
      );
  }
}
