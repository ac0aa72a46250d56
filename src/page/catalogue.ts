import type { Environment } from "../accounts/api_key.ts";
import { type ErrorCode, STATUS } from "../http/error.ts";
import { ERROR_HELP } from "../portal/error_help.ts";
import { errorsOf } from "../portal/openapi/document.ts";
import { type Input, inputsOf } from "../portal/openapi/inputs.ts";
import type { Operation as DocumentedOperation } from "../portal/openapi/operation.ts";
import { SCHEMAS } from "../portal/openapi/schemas.ts";

/** What the page tells of the service. */
export interface PageOptions {
  /** What its URLs begin with; undefined for the origin that each request names. */
  readonly publicUrl: string | undefined;
  readonly environment: Environment;
  /** Whether anybody may make an account. */
  readonly signUpIsOpen: boolean;
  /** What the service answers. */
  readonly operations: () => readonly DocumentedOperation[];
}

/** An operation as the page describes it. */
export interface Operation
  extends
    Pick<DocumentedOperation, "id" | "method" | "path" | "tag" | "summary" | "access">,
    Partial<Pick<DocumentedOperation, "description" | "deprecated" | "isExtension">> {
  readonly inputs: readonly Input[];
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
const BASE_PATH = "/v1/";

/** What the page tells of these operations; those that are not of the interface are left out. */
export function catalogueOf(all: readonly DocumentedOperation[]): Catalogue {
  const documented = all.filter(({ path }) => path.startsWith(BASE_PATH));
  const byAll = commonErrors(documented.filter(({ access }) => access === "key"));
  const withBody = commonErrors(documented.filter(({ body }) => body !== undefined))
    .filter((code) => !byAll.includes(code));
  const codes = new Set([...documented.flatMap(errorsOf), ...OF_NO_OPERATION]);
  return {
    operations: documented.map((operation) => describe(operation, [...byAll, ...withBody])),
    errors: [...codes].map((code) => ({ code, status: STATUS[code], ...ERROR_HELP[code] }))
      .sort((one, other) => one.status - other.status),
    shared: { byAll, withBody },
  };
}

function describe(operation: DocumentedOperation, shared: readonly ErrorCode[]): Operation {
  const { body, bodyType = "application/json", successes } = operation;
  return {
    ...operation,
    inputs: inputsOf(operation),
    bodyType: body === undefined ? "" : bodyType,
    bodyExample: exampleOf(body),
    answers: successes.map(({ status, description, schema }) => ({
      status,
      description,
      example: exampleOf(schema),
    })),
    errors: errorsOf(operation).filter((code) => !shared.includes(code)),
  };
}

function exampleOf(schema: string | undefined): unknown {
  return SCHEMAS[schema ?? ""]?.examples?.[0];
}

function commonErrors(operations: readonly DocumentedOperation[]): ErrorCode[] {
  const [first, ...others] = operations.map(errorsOf);
  return (first ?? []).filter((code) => others.every((codes) => codes.includes(code)));
}
