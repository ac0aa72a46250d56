import { invalidRequest } from "../web/mod.ts";
import {
  BIDI_CONTROLS,
  extensibleEnum,
  Invalid,
  list,
  named,
  nameText,
  nullable,
  object,
  oneOf,
  optional,
  output,
  type Parsed,
  type ParsedMembers,
  type Schema,
  text,
  timestamp,
} from "../web/schema.ts";
import { KEY_SCOPES } from "../service/mod.ts";
import type { Catalogue } from "../resource/mod.ts";
import { type Account, keyWith, MAX_NAME_LENGTH } from "./account.ts";
import { type AddedKey, keyNotFound, MAX_ADDED_KEYS, validKeysOf } from "./added_keys.ts";
import type { NewKey } from "./account_store.ts";

/** The label of a key in a request. Operators' terminals show it. */
export const KEY_LABEL: Schema<string> = nameText(MAX_NAME_LENGTH, "What the key is for", BIDI_CONTROLS);

/** The id of an added key in examples. */
export const EXAMPLE_KEY_ID = "key_7f3kQ2mZ8xVb1LpR";
const EXAMPLE_TIMES = { createdAt: "2026-11-21T20:47:39.746Z", expiresAt: "2099-12-31T00:00:00.000Z" };

const SCOPE = extensibleEnum(KEY_SCOPES, "What the key allows: reading alone, or writing, too");
const ALLOWED = {
  id: text({ description: "The key's id" }),
  label: text({ description: "What the key is for" }),
  scope: SCOPE,
  collections: nullable(
    list(text(), 100, { description: "The collections that it is for; null if for all" }),
  ),
  expiresAt: nullable(timestamp({ description: "When it stops working; null if it does not" })),
};
const { id, label, scope, collections, expiresAt } = ALLOWED;
const createdAt = timestamp({ description: "When it was added" });
const MEMBERS = { id, label, scope, collections, createdAt, expiresAt };

/** The id of an added key in a path. An id of any other form gets 404, because no key can have it. */
export const KEY_ID: Schema<string> = {
  ...text({ description: "The key's id", examples: [EXAMPLE_KEY_ID] }),
  fromStrings([id = ""]) {
    if (/^key_[0-9A-Za-z]{16}$/.test(id)) return id;
    throw keyNotFound();
  },
};

/** The added key of a request; null if it is the first key of its account. */
export const USED_KEY = nullable(
  output(ALLOWED, { description: "The added key of this request; null if it is the first key" }),
);

/** Added keys that stay valid after a rotation. */
export const KEPT_KEYS = list(
  output({ id, label, scope, createdAt }),
  MAX_ADDED_KEYS,
  {
    description:
      "The added keys that stay valid. If you do not know one, rotate again with `graceSeconds` 0.",
  },
);

/** Schemas of operations on added keys. */
export type KeySchemas = ReturnType<typeof keySchemas>;

/** The schemas of operations on added keys, with the collections and the API keys of a service. */
export function keySchemas({ resources }: Catalogue, apiKey: Schema<string>, exampleKey: string) {
  const names = [...new Set(resources.map(({ name }) => name))];
  const [name = ""] = names;
  const chosen = {
    label: "Dashboard",
    scope: "read",
    collections: [name],
    expiresAt: EXAMPLE_TIMES.expiresAt,
  };
  const example = { id: EXAMPLE_KEY_ID, ...chosen, ...EXAMPLE_TIMES };
  const key = named("AddedKey", output(MEMBERS, { examples: [example] }));
  return {
    /** What is chosen of a new key. */
    addition: named(
      "KeyAddition",
      object({
        label: KEY_LABEL,
        scope: optional(oneOf(KEY_SCOPES, { description: "What the key allows" }), "read"),
        collections: optional(nullable(namesOf(names))),
        expiresAt: optional(
          nullable(timestamp({ description: "When it stops working; without one, it does not" })),
        ),
      }, { examples: [chosen] }),
    ),
    /** All added keys of an account. */
    keys: named("AddedKeys", list(key, MAX_ADDED_KEYS, { examples: [[example]] })),
    /** A new key, which is shown once. */
    created: named(
      "CreatedKey",
      output({ ...MEMBERS, apiKey }, { examples: [{ ...example, apiKey: exampleKey }] }),
    ),
  };
}

/** Some of these names, at least one. */
function namesOf(names: readonly string[]): Schema<readonly string[]> {
  const schema = list(oneOf(names), names.length, {
    description: "The collections that the key is restricted to; without any, it is for all",
  });
  return {
    ...schema,
    json: { ...schema.json, minItems: 1 },
    parse(value, subject, isStrict) {
      const chosen = schema.parse(value, subject, isStrict);
      if (chosen.length > 0) return [...new Set(chosen)];
      throw new Invalid(`${subject} must have at least one of ${names.join(", ")}: leave it out for all`);
    },
  };
}

/** The data for a key that a request adds at `now`. @throws {ApiError} if it has expired. */
export function newKeyOf(
  { label, scope, collections, expiresAt }: Parsed<KeySchemas["addition"]>,
  now: number,
): NewKey {
  const end = expiresAt ? Date.parse(expiresAt) : Infinity;
  if (end <= now) throw invalidRequest("The field expiresAt must be in the future.", "expiresAt");
  return {
    ...{ label, scope },
    ...(collections && { collections }),
    ...(expiresAt && { expiresAt: end }),
  };
}

/** What is seen of an added key. */
export function keyViewOf(key: AddedKey): ParsedMembers<typeof MEMBERS> {
  const { id, label, scope, collections = null, createdAt, expiresAt } = key;
  return {
    ...{ id, label, scope, collections },
    createdAt: iso(createdAt),
    expiresAt: expiresAt === undefined ? null : iso(expiresAt),
  };
}

/** What is seen of the added keys that an account has after a rotation at `now`. */
export function keptKeysOf(account: Account, now: number): Parsed<typeof KEPT_KEYS> {
  return validKeysOf(account, now).map(({ id, label, scope, createdAt }) => ({
    ...{ id, label, scope },
    createdAt: iso(createdAt),
  }));
}

/** What is seen of the key with this hash; null if it is the account's first key, and undefined if it is none. */
export function usedKeyOf(account: Account, hash: string, now: number): Parsed<typeof USED_KEY> | undefined {
  const key = keyWith(account, hash, now);
  if (key === undefined) return undefined;
  if (key === "first") return null;
  const { createdAt: _, ...used } = keyViewOf(key);
  return used;
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
