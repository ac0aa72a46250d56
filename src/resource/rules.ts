import { ApiError, type ErrorKind, ERRORS, invalidRequest } from "../web/mod.ts";
import type { Members } from "../web/schema.ts";
import type { Change, Item, Rule } from "./hook.ts";
import { faultOf, requireReturned } from "./hooks.ts";
import type { Resource } from "./resource.ts";

/**
 * Asks the rules of a collection about a change, unless an account is being deleted or the collection rebuilt.
 *
 * @throws {ApiError} if the change breaks a rule that the item kept before.
 * @throws {HookFault} if a rule throws anything else, or returns anything but a text.
 */
export function requireRules({ name, rules, fields }: Resource, change: Change): void {
  if (change.by === "removal" || change.by === "rebuild") return;
  for (const [index, rule] of rules.entries()) {
    const named = `The rule ${index + 1} of ${name}`;
    const fault = faultIn(rule, change, { named });
    if (fault === undefined) continue;
    const { before, after } = change;
    // An item that an earlier release stored stays changeable, but only as long as it is the item that breaks the rule.
    const isChanged = before && after && before !== after;
    if (isChanged && faultIn(rule, change, { named, after: before }) !== undefined) continue;
    const kind = kindOf(rule, change);
    throw kind === ERRORS.invalid_request
      ? invalidRequest(fault, fieldIn(fault, fields))
      : new ApiError(kind, fault);
  }
}

/** The errors with which a rule refuses creations and changes, and deletions. */
export function errorsOfRule(rule: Rule): { readonly put: ErrorKind[]; readonly delete: ErrorKind[] } {
  const { error = ERRORS.invalid_request, errors = [], deletionErrors = [error], check, checkDeletion } =
    rule;
  return { put: check ? [error, ...errors] : [], delete: checkDeletion ? [...deletionErrors] : [] };
}

/** The error of what a rule says about a change. */
function kindOf(rule: Rule, { after }: Change): ErrorKind {
  const { put, delete: deletion } = errorsOfRule(rule);
  const [kind = ERRORS.invalid_request] = after ? put : deletion;
  return kind;
}

/** How a rule is asked about a change. */
interface Asked {
  /** What faults call the rule. */
  readonly named: string;
  /** The item after the change, in place of its own. */
  readonly after?: Item | undefined;
}

/** What a rule says about a change. */
function faultIn(rule: Rule, change: Change, { named, after = change.after }: Asked): string | undefined {
  const { before } = change;
  let said: unknown;
  try {
    const state = {
      by: change.by,
      // Read only if the rule is about time, which examples need to know.
      get now() {
        return change.now;
      },
    };
    if (after) said = rule.check?.(Object.assign(state, { item: after, before }));
    else if (before) said = rule.checkDeletion?.(Object.assign(state, { before }));
  } catch (error) {
    throw faultOf(error, named);
  }
  return requireReturned(said, isFault, `${named} must return a text or nothing`);
}

function isFault(said: unknown): said is string | undefined {
  return said === undefined || typeof said === "string";
}

/** The first field that a sentence names, with what follows its name, such as `lines[2].cents`; undefined if it names none. */
function fieldIn(sentence: string, fields: Members): string | undefined {
  const names = sentence.match(/[A-Za-z]\w*(?:\[\d+\]|\.\w+)*/g) ?? [];
  return names.find((name) => Object.hasOwn(fields, /^\w+/.exec(name)?.[0] ?? ""));
}
