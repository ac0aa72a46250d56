import { type AllowedOrigins, createCors, deprecationHeaders } from "../web/headers.ts";
import { ownOf } from "../web/mod.ts";
import { SERVICE_HEADERS } from "../service/mod.ts";
import type { Admissions } from "./admission.ts";
import type { Arrival } from "./arrival.ts";
import type { InFlight } from "./in_flight.ts";
import { keptResponse, withLimitHeaders } from "./limit_responses.ts";

/** A step that adds headers to a response. */
export type Finishing = (arrival: Arrival, response: Response) => void;

/** Returns a function that makes the request's own response of one that may be shared, with limit headers. */
export function limiting(admissions: Admissions): (arrival: Arrival, made: Response) => Response {
  return function limited(arrival: Arrival, made: Response): Response {
    const { request, now, address, admission } = arrival;
    const kept = admission && keptResponse(made, admission.decision);
    if (kept) return kept;
    // Refusals already have limit headers, as do responses with a limit of their own.
    const isLimited = arrival.hasLimits && !made.headers.has("x-ratelimit-limit");
    const decision = isLimited ? admission?.decision ?? admissions.peek(request, address, now) : undefined;
    return decision ? withLimitHeaders(made, decision) : ownOf(made);
  };
}

/** Says when the operation is removed. */
export function addDeprecation({ matched }: Arrival, { headers }: Response): void {
  const deprecation = matched.kind === "found" ? matched.endpoint.deprecated : undefined;
  // Kept responses already have them, which is faster.
  if (!deprecation || headers.has("deprecation")) return;
  for (const [name, value] of Object.entries(deprecationHeaders(deprecation))) headers.set(name, value);
}

/** Names the document that describes the operations, if there is nothing (RFC 8631). */
export function describing(documentOf: (path: string) => string, publicUrl: string = ""): Finishing {
  return function addDescription({ path }: Arrival, { status, headers }: Response): void {
    if (status === 404) headers.append("link", `<${publicUrl}${documentOf(path)}>; rel="service-desc"`);
  };
}

/** Asks clients of a stopping service to connect again (RFC 9112 section 9.6), so that a proxy sends them elsewhere. */
export function closing(inFlight: Pick<InFlight, "isStopping">): Finishing {
  return function addClose(_, { headers }: Response): void {
    if (inFlight.isStopping) headers.set("connection", "close");
  };
}

/** Repeats the ID of the request. */
export function addRequestId({ id }: Arrival, { headers }: Response): void {
  headers.set("x-request-id", id);
}

/** Lets web pages of these origins read responses to clients. */
export function sharing(origins: AllowedOrigins): Finishing {
  const setCorsHeaders = createCors(Object.keys(SERVICE_HEADERS), origins);
  return function addCors(arrival: Arrival, { headers }: Response): void {
    if (!arrival.isForOperator) setCorsHeaders(arrival.request, headers);
  };
}
