/** Requests allowed in each window. */
export interface Limits {
  readonly minute: number;
  readonly day: number;
}

/** The plans. */
export const PLANS = ["free", "pro", "business", "enterprise"] as const;

/** A plan's name. */
export type Plan = typeof PLANS[number];

/** The limits of every plan that has fixed ones; Enterprise limits are agreed with each account. */
export const PLAN_LIMITS: Readonly<Record<Exclude<Plan, "enterprise">, Limits>> = {
  free: { minute: 60, day: 1_000 },
  pro: { minute: 300, day: 10_000 },
  business: { minute: 1_000, day: 100_000 },
};

/** Whether the text names a plan. */
export function isPlan(text: string): text is Plan {
  return PLANS.some((plan) => plan === text);
}
