import { ApiError, type Problem } from "./http/error.ts";
import { describeError, type Log } from "./http/log.ts";
import { StoreUnavailable } from "./kv/deadline.ts";

/** What requests are told once the service is stopping. */
export const STOPPING: Problem = {
  code: "store_unavailable",
  message: "The service is stopping. Try again shortly.",
  headers: { "retry-after": "1", connection: "close" },
};

const UNAVAILABLE: Problem = {
  code: "store_unavailable",
  message: "The store does not answer. Try again shortly.",
  headers: { "retry-after": "5" },
};

const INTERNAL: Problem = { code: "internal_error", message: "Something went wrong here.", headers: {} };

/** What a client is told of what was thrown. Only an ApiError speaks for itself; the rest is logged. */
export function problemOf(error: unknown, { id, now, route }: FailedRequest, log: Log): Problem {
  if (error instanceof ApiError) return error;
  log.error({ time: new Date(now).toISOString(), id, route, ...describeError(error) });
  return error instanceof StoreUnavailable ? UNAVAILABLE : INTERNAL;
}

/** What the log says of the request that failed. */
interface FailedRequest {
  readonly id: string;
  /** When it arrived, ms since the epoch. */
  readonly now: number;
  readonly route: string;
}
