import type { Limits } from "../limits/mod.ts";
import { ApiError, ERRORS } from "../web/mod.ts";
import type { Plans } from "../resource/mod.ts";
import type { Account } from "./account.ts";

/** The names of all plans, in the order of documents. */
export function planNames({ limits, own }: Plans): string[] {
  return [...Object.keys(limits), own];
}

/** A plan that was chosen, with its limits. */
export type ChosenPlan = Pick<Account, "plan" | "limits">;

/**
 * A plan and its limits: if they are agreed, as given or as the account had them. By default, the plan that the account
 * had, or that sign-up gives.
 *
 * @throws {ApiError} `invalid_request`
 */
export function planOf(
  plans: Plans,
  { plan, limits }: { readonly plan?: string; readonly limits?: Partial<Limits> },
  before?: ChosenPlan,
): ChosenPlan {
  const chosen = plan ?? before?.plan ?? plans.signUp;
  const fixed = plans.limits[chosen];
  if (fixed !== undefined) {
    if (limits === undefined) return { plan: chosen, limits: fixed };
    throw invalid(`The field limits is for the ${plans.own} plan; the ${chosen} plan has fixed limits.`);
  }
  const { minute, day } = { ...(before?.plan === chosen ? before.limits : {}), ...limits };
  if (minute !== undefined && day !== undefined) return { plan: chosen, limits: { minute, day } };
  throw invalid(`The fields limits.minute and limits.day are required for the ${chosen} plan.`);
}

function invalid(message: string): ApiError {
  return new ApiError(ERRORS.invalid_request, message);
}
