import type { Environment } from "../accounts/api_key.ts";
import { errorsOf, isDocumented } from "../api/openapi.ts";
import type { Operation } from "../api/operation.ts";
import { resolved, type Schema } from "../api/schema.ts";
import { type ErrorCode, ERRORS } from "../http/error.ts";

/** What the page tells of the service. */
export interface PageOptions {
  /** What its URLs begin with; undefined for the origin that each request names. */
  readonly publicUrl: string | undefined;
  readonly environment: Environment;
  /** Whether anybody may make an account. */
  readonly signUpIsOpen: boolean;
  /** All operations of the service. */
  readonly operations: () => readonly Operation[];
}

/** Everything that the page tells of the interface. */
export interface Catalogue {
  /** The operations that are part of it. */
  readonly operations: readonly Operation[];
  /** Codes of every error that a client can meet, by status. */
  readonly errors: readonly ErrorCode[];
  /** Codes of the errors that all operations with a key share, and of those that all with a body share. */
  readonly shared: { readonly byAll: readonly ErrorCode[]; readonly withBody: readonly ErrorCode[] };
}

const OF_NO_OPERATION: readonly ErrorCode[] = ["not_found", "method_not_allowed"];

/** What the page tells of these operations. */
export function catalogueOf(all: readonly Operation[]): Catalogue {
  const operations = all.filter(isDocumented);
  const byAll = commonErrors(operations.filter(({ access }) => access === "key"));
  const withBody = commonErrors(operations.filter(({ body }) => body)).filter((code) =>
    !byAll.includes(code)
  );
  const errors = [...new Set([...operations.flatMap(errorsOf), ...OF_NO_OPERATION])]
    .sort((one, other) => ERRORS[one].status - ERRORS[other].status);
  return { operations, errors, shared: { byAll, withBody } };
}

/** The operations by what they are about. */
export function byTag(operations: readonly Operation[]): [tag: string, own: Operation[]][] {
  return [...Map.groupBy(operations, ({ tag = "" }) => tag)];
}

/** Media type of the operation's body; empty if it has none. */
export function bodyTypeOf({ body, bodyType = "application/json" }: Operation): string {
  return body ? bodyType : "";
}

/** The schema's example as JSON text, indented by `indent` spaces; empty if there is none. */
export function exampleOf(schema: Schema | undefined, indent = 0): string {
  const [example] = (schema && resolved(schema).examples) ?? [];
  return example === undefined ? "" : JSON.stringify(example, null, indent);
}

function commonErrors(operations: readonly Operation[]): ErrorCode[] {
  const [first, ...others] = operations.map(errorsOf);
  return (first ?? []).filter((code) => others.every((codes) => codes.includes(code)));
}
