import type { Environment } from "../accounts/api_key.ts";
import { errorsOf, type InputMember, inputsOf, isDocumented } from "../api/openapi.ts";
import type { Operation as DocumentedOperation } from "../api/operation.ts";
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
  readonly operations: () => readonly DocumentedOperation[];
}

/** An operation as the page describes it. */
export interface Operation
  extends
    Pick<DocumentedOperation, "id" | "method" | "path" | "summary" | "access">,
    Partial<Pick<DocumentedOperation, "description" | "deprecated" | "isExtension">> {
  readonly tag: string;
  readonly inputs: readonly InputMember[];
  /** Media type of the body; empty if there is none. */
  readonly bodyType: string;
  /** An example of the body; undefined if there is none. */
  readonly bodyExample: unknown;
  readonly answers: readonly Answer[];
  /** Codes of errors that not all operations share. */
  readonly errors: readonly ErrorCode[];
}

/** What an operation answers with when it succeeds. */
export interface Answer {
  readonly status: number;
  readonly description: string;
  /** An example of the body; undefined if there is none. */
  readonly example: unknown;
}

/** An error code, with what it means and what a client should do. */
export interface ErrorKind {
  readonly code: ErrorCode;
  readonly status: number;
  readonly means: string;
  readonly todo: string;
}

/** Everything that the page tells of the interface. */
export interface Catalogue {
  readonly operations: readonly Operation[];
  /** Every error that a client can meet, by status. */
  readonly errors: readonly ErrorKind[];
  /** Codes of the errors that all operations with a key share, and of those that all with a body share. */
  readonly shared: { readonly byAll: readonly ErrorCode[]; readonly withBody: readonly ErrorCode[] };
}

const OF_NO_OPERATION: readonly ErrorCode[] = ["not_found", "method_not_allowed"];

/** What the page tells of these operations; those that are not of the interface are left out. */
export function catalogueOf(all: readonly DocumentedOperation[]): Catalogue {
  const documented = all.filter(isDocumented);
  const byAll = commonErrors(documented.filter(({ access }) => access === "key"));
  const withBody = commonErrors(documented.filter(({ body }) => body !== undefined))
    .filter((code) => !byAll.includes(code));
  const codes = new Set([...documented.flatMap(errorsOf), ...OF_NO_OPERATION]);
  return {
    operations: documented.map((operation) => describe(operation, [...byAll, ...withBody])),
    errors: [...codes].map((code) => ({ code, ...ERRORS[code] }))
      .sort((one, other) => one.status - other.status),
    shared: { byAll, withBody },
  };
}

function describe(operation: DocumentedOperation, shared: readonly ErrorCode[]): Operation {
  const { tag = "", body, bodyType = "application/json", answers } = operation;
  return {
    ...operation,
    tag,
    inputs: inputsOf(operation),
    bodyType: body === undefined ? "" : bodyType,
    bodyExample: exampleOf(body),
    answers: Object.entries(answers).map(([status, { description, body }]) => ({
      status: Number(status),
      description,
      example: exampleOf(body),
    })),
    errors: errorsOf(operation).filter((code) => !shared.includes(code)),
  };
}

function exampleOf(schema: Schema | undefined): unknown {
  return schema && resolved(schema).examples?.[0];
}

function commonErrors(operations: readonly DocumentedOperation[]): ErrorCode[] {
  const [first, ...others] = operations.map(errorsOf);
  return (first ?? []).filter((code) => others.every((codes) => codes.includes(code)));
}
