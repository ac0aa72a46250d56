import type { Plans } from "../declare.ts";

/** The plans of accounts. */
export const PLANS = {
  limits: {
    free: { minute: 60, day: 1_000 },
    pro: { minute: 300, day: 10_000 },
    business: { minute: 1_000, day: 100_000 },
  },
  signUp: "free",
  own: "enterprise",
} as const satisfies Plans;
