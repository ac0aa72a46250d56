import type { Plans } from "../../../src/declare.ts";

/** The plans of accounts. */
export const PLANS = {
  limits: { trial: { minute: 30, day: 300 }, team: { minute: 400, day: 40_000 } },
  signUp: "trial",
  own: "company",
} as const satisfies Plans;
