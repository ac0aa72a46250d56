import { ApiError, type ErrorKind, type Scope, type Scoped } from "../web/mod.ts";

/** What an added key can allow. */
export const KEY_SCOPES = ["read", "read/write"] as const;

/** What an added key allows. */
export interface KeyScope {
  /** One of {@linkcode KEY_SCOPES}. Any other, which a later release might store, allows nothing. */
  readonly scope: string;
  /** The names of the collections that it is restricted to; undefined if it is not restricted. */
  readonly collections?: readonly string[];
}

/** The error for an added key that does not allow an operation. */
export const KEY_SCOPE: ErrorKind = {
  code: "key_scope",
  status: 403,
  means: "The API key does not have the scope or the collections that the operation needs.",
  todo: "Use the first key of the account, or an added one that allows it. This request counted.",
};

const ALLOWED: ReadonlyMap<string, readonly Scope[]> = new Map([
  ["read", ["read"]],
  ["read/write", ["read", "write"]],
]);
/** The scope that an added key needs. */
const NEEDED = { read: "read", write: "read/write" } as const;
const AND = new Intl.ListFormat("en");

/** A sentence on the key that an operation needs. */
export function needsOfKey({ scope, collections, isUnrestricted }: Scoped): string {
  if (scope === "manage") return "Only the first key of the account can do this.";
  const needed = `An added key needs the scope \`${NEEDED[scope]}\``;
  if (isUnrestricted) return `${needed}.`;
  return collections.length === 0
    ? `${needed}, and must not be restricted to collections.`
    : `${needed} and, if it is restricted to collections, ${
      AND.format(collections.map((name) => `\`${name}\``))
    }.`;
}

/** Requires that an added key allows an operation. An unknown one allows nothing. @throws {ApiError} `key_scope` */
export function requireScope(
  { scope, collections, isUnrestricted }: Scoped,
  key: KeyScope = { scope: "" },
): void {
  if (scope === "manage") throw insufficientScope("Only the first key of the account can do this.");
  if (!ALLOWED.get(key.scope)?.includes(scope)) {
    throw insufficientScope(`This operation needs a key with the scope ${NEEDED[scope]}.`);
  }
  const { collections: allowed } = key;
  if (allowed === undefined || isUnrestricted) return;
  if (collections.length > 0 && collections.every((name) => allowed.includes(name))) return;
  throw insufficientScope(
    collections.length === 0
      ? "This operation needs a key that is not restricted to collections."
      : `This operation needs a key for ${AND.format(collections)}.`,
  );
}

/** The 403 for a key that does not allow an operation (RFC 6750 section 3.1). */
export function insufficientScope(message: string): ApiError {
  return new ApiError(KEY_SCOPE, message, { "www-authenticate": 'Bearer error="insufficient_scope"' });
}
