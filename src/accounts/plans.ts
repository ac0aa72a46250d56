import { AGAIN, decodeJson, encodeJson, type Entry, retried, type Store } from "../engine/mod.ts";
import type { Limits } from "../limits/mod.ts";
import { invalidRequest } from "../web/mod.ts";
import type { Plans } from "../service/mod.ts";
import { type Catalogue, ResourceError } from "../resource/mod.ts";
import { type Account, accountKey, decodeAccount } from "./account.ts";

/** Maximum of a limit. */
export const MAX_LIMIT = 1e12;

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
    throw invalidRequest(
      `The field limits is for the ${plans.own} plan; the ${chosen} plan has fixed limits.`,
      "limits",
    );
  }
  const { minute, day } = { ...(before?.plan === chosen ? before.limits : {}), ...limits };
  if (minute !== undefined && day !== undefined) return { plan: chosen, limits: { minute, day } };
  const missing = Object.entries({ minute, day }).filter(([, limit]) => limit === undefined)
    .map(([name]) => `limits.${name}`);
  const [subject, are] = missing.length === 1 ? ["field", "is"] : ["fields", "are"];
  throw invalidRequest(
    `The ${subject} ${missing.join(" and ")} ${are} required for the ${chosen} plan.`,
    missing[0],
  );
}

/** The row with the names of the plans that accounts may have. */
const NAMES: Deno.KvKey = ["plans"];
const NAME = /^[a-z][a-z0-9_-]{0,29}$/;
const PREFIX = /^[a-z][a-z0-9]{0,11}$/;
const PAGE = 500;

/**
 * Checks the plans and key prefixes of a catalogue, and that it has every plan of an account. The store remembers the
 * names of the plans, so that accounts are read only if one is missing.
 *
 * @throws {ResourceError}
 * @throws {StoreUnavailable}
 */
export async function openAccounts(store: Store, catalogue: Catalogue): Promise<void> {
  const [fault] = faultsOf(catalogue);
  if (fault !== undefined) throw new ResourceError(`${fault}.`);
  const names = planNames(catalogue.plans);
  await retried(async () => {
    const row = await store.get(NAMES);
    const known = row && decodeJson<readonly string[]>(row);
    if (known && names.length === known.length && names.every((name) => known.includes(name))) return;
    if (!known?.every((name) => names.includes(name))) await requireKnownPlans(store, names);
    const { ok } = await store.commit((operation) => {
      operation.check({ key: NAMES, versionstamp: row?.versionstamp ?? null }).set(NAMES, encodeJson(names));
    });
    return ok ? undefined : AGAIN;
  });
}

/** Reads all accounts. @throws {ResourceError} if one has another plan than these. */
async function requireKnownPlans(store: Store, names: readonly string[]): Promise<void> {
  let start = accountKey("");
  let page: Entry[];
  do {
    page = await store.list({ start, end: accountKey("~") }, PAGE);
    const other = page.map(decodeAccount).find(({ plan }) => !names.includes(plan));
    if (other !== undefined) {
      throw new ResourceError(
        `Accounts have the plan ${other.plan}, such as ${other.id}, but this release does not declare it. Declare it in ` +
          "src/catalogue/plans.ts, or move these accounts first: deno task accounts plan ID PLAN.",
      );
    }
    start = [...page.at(-1)?.key ?? [], ""];
  } while (page.length === PAGE);
}

/** What is wrong with the plans and key prefixes of a catalogue. */
function* faultsOf({ plans, keyPrefix, formerKeyPrefixes }: Catalogue): Generator<string> {
  const { limits, signUp, own } = plans;
  for (const name of planNames(plans)) {
    if (!NAME.test(name)) yield `The plan ${name} must have a name of lower-case letters, digits, _ and -`;
  }
  for (const [name, { minute, day }] of Object.entries(limits)) {
    for (const limit of [minute, day]) {
      if (!Number.isSafeInteger(limit) || limit < 1 || limit > MAX_LIMIT) {
        yield `The plan ${name} must have limits from 1 to ${MAX_LIMIT}, not ${limit}`;
      }
    }
  }
  if (limits[signUp] === undefined) {
    yield `The plan ${signUp} of sign-up must have limits: add it to limits, or name another`;
  }
  if (limits[own] !== undefined) {
    yield `The plan ${own} must not have limits, because each of its accounts has its own: remove it from limits`;
  }
  for (const prefix of [keyPrefix, ...formerKeyPrefixes]) {
    if (!PREFIX.test(prefix)) {
      yield `The key prefix ${prefix} must be at most 12 lower-case letters and digits, such as my: keys then begin with my_live_`;
    }
  }
  if (formerKeyPrefixes.includes(keyPrefix)) {
    yield `The key prefix ${keyPrefix} must not be a former one, too: remove it from formerKeyPrefixes`;
  }
}
