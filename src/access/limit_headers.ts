import type { Verdict } from "./usage.ts";
import { dayWindow, decisiveWindow, minuteWindow } from "./window.ts";

/**
 * Sets the rate limit headers: those of interface section 8, which describe the window that matters
 * most to the caller, and RateLimit-Policy and RateLimit (draft-ietf-httpapi-ratelimit-headers), which
 * describe both.
 */
export function setLimitHeaders(headers: Headers, verdict: Verdict): void {
  const { limits } = verdict;
  const minute = minuteWindow(verdict);
  const day = dayWindow(verdict);
  const { limit, remaining, reset } = decisiveWindow(verdict, minute, day);
  headers.set("x-ratelimit-limit", `${limit}`);
  headers.set("x-ratelimit-remaining", `${remaining}`);
  headers.set("x-ratelimit-reset", `${Math.ceil(reset / 1000)}`);
  const daily = limits.day !== Infinity;
  headers.set(
    "ratelimit-policy",
    `"minute";q=${limits.minute};w=60` + (daily ? `, "day";q=${limits.day};w=86400` : ""),
  );
  headers.set(
    "ratelimit",
    `"minute";r=${minute.remaining};t=${minute.seconds}` +
      (daily ? `, "day";r=${day.remaining};t=${day.seconds}` : ""),
  );
}
