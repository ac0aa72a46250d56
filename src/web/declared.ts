import { type ErrorKind, ERRORS } from "./error.ts";
import { stringifyJson } from "./json.ts";
import { isRequired, resolved } from "./objects.ts";
import type { DeclaredOperation } from "./operation.ts";
import type { JsonSchema, Schema } from "./schema_types.ts";

const ANY = [ERRORS.invalid_request, ERRORS.internal_error, ERRORS.overloaded];
/** Errors of operations with a body. */
const BODY_ERRORS: readonly ErrorKind[] = [
  ERRORS.invalid_json,
  ERRORS.invalid_content_type,
  ERRORS.request_timeout,
  ERRORS.payload_too_large,
];

const ERROR_CODE = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)*$/;

/** Every error of an operation. */
export function errorsOf(operation: DeclaredOperation): readonly ErrorKind[] {
  const { access: { errors: ofAccess, scopes }, body, deprecated, errors, scope, isUnrestricted } = operation;
  const gone = deprecated ? [ERRORS.gone] : [];
  const ofScope = scopes && !(scope === "read" && isUnrestricted) ? [scopes.error] : [];
  return [...new Set([...ANY, ...ofAccess, ...ofScope, ...(body ? BODY_ERRORS : []), ...errors, ...gone])];
}

/** A sentence on what a credential needs for an operation; undefined if there is nothing to say. */
export function needsOf(operation: DeclaredOperation): string | undefined {
  return operation.access.scopes?.needs(operation);
}

/** Every error of an operation by status, in ascending order. */
export function errorsByStatus(operation: DeclaredOperation): [status: number, kinds: ErrorKind[]][] {
  const byStatus = Map.groupBy(errorsOf(operation), ({ status }) => status);
  return [...byStatus].sort(([one], [other]) => one - other);
}

/** Every error of these operations and of requests that match none, and `others`, by status in ascending order. */
export function errorsOfAll(
  operations: readonly DeclaredOperation[],
  others: readonly ErrorKind[],
): ErrorKind[] {
  const ofNone = [ERRORS.not_found, ERRORS.method_not_allowed];
  const kinds = new Set([...operations.flatMap(errorsOf), ...ofNone, ...others]);
  return [...kinds].sort((one, other) => one.status - other.status);
}

/** Whether a document includes an operation: it has a tag, and its path is below the server's. */
export function isDocumented({ tag, path }: DeclaredOperation, base: string): boolean {
  return tag !== undefined && path.startsWith(`${base}/`);
}

/** A parameter or header of a request. */
export interface Parameter {
  readonly name: string;
  readonly place: "path" | "query" | "header";
  readonly schema: Schema;
}

/** The parameters of an operation, without those that documents leave out. */
export function parametersOf({ params, query, headers }: DeclaredOperation): Parameter[] {
  const byPlace = [["path", params], ["query", query], ["header", headers]] as const;
  return byPlace.flatMap(([place, members]) =>
    Object.entries(members).map(([name, schema]) => ({ name, place, schema }))
  ).filter(({ schema }) => !schema.isHidden);
}

/** Media type of the operation's body; empty if it has none. */
export function bodyTypeOf({ body, bodyType = "application/json" }: DeclaredOperation): string {
  return body ? bodyType : "";
}

/** What is wrong with an operation by itself. Each fault follows its name. */
export function* faultsOf(operation: DeclaredOperation): Generator<string> {
  const { path, params } = operation;
  if (!path.startsWith("/")) yield `must have a path that begins with /, not ${path}`;
  const inPath = path.split("/").filter((segment) => /[{}]/.test(segment));
  for (const segment of new Set(inPath)) {
    const [, name] = /^\{(\w+)\}$/.exec(segment) ?? [];
    if (name === undefined) {
      yield `must have whole segments as parameters of its path, such as {id}, not ${segment}`;
    } else if (!Object.hasOwn(params, name)) yield `must declare the parameter ${name} of its path in params`;
    if (inPath.indexOf(segment) !== inPath.lastIndexOf(segment)) {
      yield `must not have ${segment} twice in its path`;
    }
  }
  for (const name of Object.keys(params)) {
    if (!inPath.includes(`{${name}}`)) yield `must not declare the parameter ${name}, which its path lacks`;
  }
  for (const { code, status } of operation.errors) {
    if (!ERROR_CODE.test(code)) {
      yield `must have errors with codes of lower-case letters, digits and _, not ${code}`;
    }
    if (!(status >= 400 && status <= 599)) {
      yield `must have errors with a status from 400 to 599, not ${status}, as ${code} has`;
    }
  }
  for (const { faults = [] } of schemasOf(operation)) {
    for (const fault of faults) yield `has an invalid schema: it ${fault}`;
  }
}

/** A name that two operations use differently. */
export interface Conflict {
  /** Such as `the path GET /v1/notes`. */
  readonly name: string;
  readonly operations: readonly [DeclaredOperation, DeclaredOperation];
}

/** A name that two of these operations of a document use differently; undefined if there is none. */
export function conflictIn(operations: readonly DeclaredOperation[]): Conflict | undefined {
  const meanings = new Map<string, readonly [meaning: unknown, operation?: DeclaredOperation]>([
    ["the schema Error", [undefined]],
  ]);
  for (const operation of operations) {
    const { id, method, path, tag } = operation;
    const schemas = schemasOf(operation).flatMap(({ definitions }) => Object.entries(definitions));
    const names: readonly (readonly [name: string, meaning: unknown])[] = [
      [`the path ${method} ${path}`, operation],
      [`the operation ${id}`, operation],
      ...(tag ? [[`the tag ${tag.name}`, tag.description] as const] : []),
      ...schemas.map(([name, json]) => [`the schema ${name}`, stringifyJson(json)] as const),
    ];
    for (const [name, meaning] of names) {
      const [known, other = operation] = meanings.get(name) ?? [meaning];
      if (known !== meaning) return { name, operations: [other, operation] };
      meanings.set(name, [meaning, operation]);
    }
  }
  return undefined;
}

/** The code of two different errors; undefined if there is none. */
export function ambiguousCodeIn(kinds: readonly ErrorKind[]): string | undefined {
  const meanings = new Map<string, string>();
  for (const { code, status, means, todo } of kinds) {
    const text = stringifyJson([status, means, todo]);
    if ((meanings.get(code) ?? text) !== text) return code;
    meanings.set(code, text);
  }
  return undefined;
}

/** The schemas of its parameters and bodies. */
export function schemasOf(operation: DeclaredOperation): Schema[] {
  const { body, answers } = operation;
  const bodies = [body, ...Object.values(answers).map(({ body }) => body)];
  return [
    ...parametersOf(operation).map(({ schema }) => schema),
    ...bodies.filter((schema) => schema !== undefined),
  ];
}

/** A parameter, a header or a body field of a request. */
export interface InputMember {
  readonly name: string;
  readonly place: Parameter["place"] | "body";
  readonly isRequired: boolean;
  readonly schema: JsonSchema;
}

/** Every parameter, header and body field of the operation's requests that clients can set. */
export function inputsOf(operation: DeclaredOperation): InputMember[] {
  const { json = {}, definitions = {}, ignored = [], defaults = {} } = operation.body ?? {};
  const { properties = {}, required = [] } = resolved({ json, definitions });
  const parameters = parametersOf(operation).map(({ name, place, schema }) => ({
    name,
    place,
    isRequired: isRequired(schema),
    schema: resolved(schema),
  }));
  const settable = Object.entries(properties).filter(([name]) => !ignored.includes(name));
  const members = settable.map(([name, json]) => ({
    name,
    place: "body" as const,
    isRequired: required.includes(name),
    schema: { ...resolved({ json, definitions }), default: defaults[name] },
  }));
  return [...parameters, ...members];
}
