import { type ErrorCode, problemResponse } from "../http/error.ts";
import { setLimitHeaders } from "./limit_headers.ts";
import type { Refusal, Verdict } from "./usage.ts";
import { dayWindow, decisiveWindow, minuteWindow } from "./window.ts";

const REASONS: Readonly<Record<Refusal, (limit: number) => [code: ErrorCode, reason: string]>> = {
  minute: (limit) => ["rate_limit_minute", `More than ${limit} requests in a minute.`],
  day: (limit) => ["rate_limit_day", `More than ${limit} requests in a day (UTC).`],
  ban: () => ["key_banned", "The API key is banned because requests went on after 429 responses."],
};

/** The 429 responses, limit headers included. Requests with one verdict, which come in a row, share one. */
export class Refusals {
  #last: { readonly verdict: Verdict; readonly response: Response } | undefined;

  /** The 429 of a refused request, with `Retry-After` in seconds. */
  respondTo(verdict: Verdict, refusal: Refusal): Response {
    if (this.#last?.verdict !== verdict) this.#last = { verdict, response: refused(verdict, refusal) };
    return this.#last.response.clone();
  }
}

function refused(verdict: Verdict, refusal: Refusal): Response {
  const { limit, seconds } = decisiveWindow(verdict, minuteWindow(verdict), dayWindow(verdict));
  const [code, reason] = REASONS[refusal](limit);
  const response = problemResponse({
    code,
    message: `${reason} Try again in ${seconds} s.`,
    headers: { "retry-after": `${seconds}` },
  });
  setLimitHeaders(response.headers, verdict);
  return response;
}
