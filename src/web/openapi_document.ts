import {
  bodyTypeOf,
  errorsByStatus,
  errorsOf,
  errorsOfAll,
  isDocumented,
  needsOf,
  type Parameter,
  parametersOf,
  schemasOf,
} from "./declared.ts";
import { DEPRECATION_HEADERS, deprecationHeaders } from "./deprecation.ts";
import type { ErrorKind } from "./error.ts";
import { stringifyJson } from "./json.ts";
import { isRequired, named, optional, output, resolved } from "./objects.ts";
import type { Answer, DeclaredOperation } from "./operation.ts";
import { HTTP_HEADERS } from "./response_headers.ts";
import { extensibleEnum, integer, text } from "./scalars.ts";
import type { Schema } from "./schema_types.ts";

/** A description of the operations below a path. */
export interface Interface {
  readonly path: string;
  readonly version: string;
  /** The version without extensions, which the document marks; undefined if it marks none. */
  readonly original: string | undefined;
  /**
   * Names of parameters that are extensions of older operations, in the order in which they were added. They stand last
   * in this order, because generated clients pass parameters by position.
   */
  readonly addedParameters: readonly string[];
  readonly contact: { readonly name: string };
  readonly license: { readonly name: string; readonly identifier: string };
  readonly title: string;
  readonly summary: string;
  readonly description: string;
  /** Describes the bearer token of its operations. */
  readonly credential: string;
  /** Descriptions of headers that HTTP does not define, by name. */
  readonly headers: Readonly<Record<string, object>>;
  /** Names of headers that all its responses have. */
  readonly allHave: readonly string[];
  /** Names of headers that errors have, by status. */
  readonly errorsHave: Readonly<Record<number, readonly string[]>>;
  /** Errors that no operation declares, such as those of proxies. */
  readonly errors: readonly ErrorKind[];
  /** The example of an Error body. */
  readonly error: ErrorKind;
}

/** The Error body of these kinds. */
function errorOf(kinds: readonly ErrorKind[], example: ErrorKind): Schema {
  const codes = kinds.map(({ code }) => code);
  const texts = kinds.flatMap(({ texts = {} }) => Object.entries(texts));
  const counts = kinds.flatMap(({ counts = {} }) => Object.entries(counts));
  const count = (description: string) => optional(integer(0, Number.MAX_SAFE_INTEGER, { description }));
  return named(
    "Error",
    output({
      code: extensibleEnum(codes, "Machine-readable error code"),
      message: text({ description: "Human-readable description" }),
      status: integer(400, 599, { description: "The HTTP status code" }),
      ...Object.fromEntries(texts.map(([name, description]) => [name, optional(text({ description }))])),
      ...Object.fromEntries(counts.map(([name, description]) => [name, count(description)])),
    }, { examples: [exampleOf(example)] }),
  );
}

/** Names of error responses in documents, by status. */
const RESPONSE_NAMES: Readonly<Record<number, string>> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  408: "RequestTimeout",
  409: "Conflict",
  410: "Gone",
  412: "PreconditionFailed",
  413: "ContentTooLarge",
  422: "UnprocessableContent",
  429: "TooManyRequests",
  500: "InternalServerError",
  503: "ServiceUnavailable",
};
/** Name of the response for statuses that an operation does not list. */
const DEFAULT = "Default";
/** The beginning of URLs in examples, if that of the service is not known. */
const EXAMPLE_ORIGIN = "https://api.example";

/** What operations are described with. */
interface Context extends Interface {
  /** The beginning of URLs in examples. */
  readonly origin: string;
}

/**
 * Creates the OpenAPI 3.1 document.
 *
 * @param base Prefix of its URLs; empty for URLs relative to the document's own.
 */
export function openApiDocument(
  all: readonly DeclaredOperation[],
  base: string,
  interfaceOf: Interface,
): object {
  const described = { ...interfaceOf, origin: base || EXAMPLE_ORIGIN };
  const { title, version, summary, description, contact, license, credential } = described;
  const operations = all.filter((operation) => isDocumented(operation, described.path));
  // A path stands where its last operation does, because that may end what the operations before it need.
  const byPath = [...Map.groupBy(operations.toReversed(), ({ path }) => path.slice(described.path.length))];
  const kinds = errorsOfAll(operations, described.errors);
  const error = errorOf(kinds, described.error);
  const responses = errorResponses(operations, kinds, error, described);
  const paths = byPath.toReversed().map(([path, own]) => [
    path,
    Object.fromEntries(
      own.toReversed()
        .map((operation) => [operation.method.toLowerCase(), operationObject(operation, described)]),
    ),
  ]);
  const text = stringifyJson([paths, responses]);
  const headers = Object.entries({ ...described.headers, ...HTTP_HEADERS })
    .filter(([name]) => text.includes(`"${referenceTo(name)}"`))
    .map(([name, ofHttp]) => [name, described.headers[name] ?? ofHttp] as const);
  return {
    openapi: "3.1.0",
    info: { title, version, summary, description, contact, license },
    servers: [{ url: base + described.path }],
    security: [{ bearer: [] }],
    tags: [...new Map(operations.map(({ tag }) => [tag?.name, tag])).values()],
    paths: Object.fromEntries(paths),
    components: {
      securitySchemes: { bearer: { type: "http", scheme: "bearer", description: credential } },
      schemas: Object.assign(
        {},
        ...[...operations.flatMap(schemasOf), error].map(({ definitions }) => definitions),
      ),
      headers: Object.fromEntries(headers),
      responses,
    },
  };
}

/** The operation in the document. JSON leaves out undefined fields. */
function operationObject(operation: DeclaredOperation, described: Context): object {
  const { id, tag, summary, description = `${summary}.`, deprecated, access, body } = operation;
  const age = ({ name }: Parameter) => described.addedParameters.indexOf(name);
  const needs = needsOf(operation);
  const text = needs === undefined ? description : `${description}\n\n${needs}`;
  const parameters = parametersOf(operation).sort((one, other) => age(one) - age(other))
    .map((parameter) => parameterObject(parameter, operation, described));
  return {
    operationId: id,
    tags: [tag?.name],
    summary,
    description: operation.isExtension ? asExtension(text, "\n\n", described) : text,
    deprecated: deprecated && true,
    security: access.hasCredential ? undefined : [],
    parameters: parameters.length > 0 ? parameters : undefined,
    requestBody: body && requestBody(body, operation),
    responses: Object.fromEntries([
      ...Object.entries(operation.answers).map((
        [status, answer],
      ) => [status, answerObject(answer, operation, described)]),
      ...errorsByStatus(operation).map(([status, kinds]) => [
        status,
        { $ref: `#/components/responses/${responseName(status)}`, description: meaningsOf(kinds) },
      ]),
      ["default", { $ref: `#/components/responses/${DEFAULT}` }],
    ]),
  };
}

/** The description of an extension, followed by `space` and a note that the original interface does not have it. */
function asExtension(description: string, space: string, { original }: Interface): string {
  if (original === undefined) return description;
  return `${description}${space}An extension: not part of the original interface, version ${original}.`;
}

function parameterObject(
  { name, place, schema }: Parameter,
  { isExtension }: DeclaredOperation,
  described: Interface,
): object {
  const { description = resolved(schema).description, examples: [example] = [], ...json } = schema.json;
  const isMarked = !isExtension && described.addedParameters.includes(name) && description !== undefined;
  return {
    name,
    in: place,
    required: isRequired(schema) || undefined,
    description: isMarked ? asExtension(description, " ", described) : description,
    schema: json,
    example,
  };
}

function requestBody(body: Schema, operation: DeclaredOperation): object {
  return { required: !operation.bodyIsOptional, content: { [bodyTypeOf(operation)]: contentOf(body) } };
}

/** A body with its example: importers do not read that of a schema. */
function contentOf(body: Schema): object {
  const { examples: [example] = [] } = resolved(body);
  return { schema: body.json, example };
}

/** Headers of every response of the operation, in addition to those that all responses have. */
function headersOf({ deprecated, headers }: DeclaredOperation): readonly string[] {
  return [...(deprecated ? DEPRECATION_HEADERS : []), ...("Prefer" in headers ? ["Preference-Applied"] : [])];
}

/** The names and meanings of a successful response's headers, except those that all responses have. */
export function answerHeadersOf(
  operation: DeclaredOperation,
  { headers = [] }: Answer,
): (readonly [name: string, meaning: string])[] {
  const names = [...headers, ...headersOf(operation)];
  return names.map((name) => [name, HTTP_HEADERS[name]?.description ?? ""]);
}

function answerObject(answer: Answer, operation: DeclaredOperation, described: Context): object {
  const { description, body, headers = [] } = answer;
  const own = Object.entries(examplesOf(answer, operation, described))
    .map(([name, example]) => [name, { ...HTTP_HEADERS[name], example }]);
  return {
    description,
    headers: { ...references(headers, operation, described), ...Object.fromEntries(own) },
    content: body && { "application/json": contentOf(body) },
  };
}

/** Examples of headers that the response of another operation does not have, by name. */
function examplesOf(
  { paths = {} }: Answer,
  { deprecated }: DeclaredOperation,
  { origin }: Context,
): Readonly<Record<string, string>> {
  const urls = Object.entries(paths).map(([name, path]) => [name, origin + path]);
  if (deprecated === undefined) return Object.fromEntries(urls);
  const { deprecation, sunset, link } = deprecationHeaders({
    ...deprecated,
    document: new URL(deprecated.document, origin).href,
    successor: new URL(deprecated.successor, origin).href,
  });
  return { ...Object.fromEntries(urls), Deprecation: deprecation, Sunset: sunset, Link: link };
}

/** The error responses of all operations by name: one for each status, and one for all others. */
function errorResponses(
  operations: readonly DeclaredOperation[],
  kinds: readonly ErrorKind[],
  { json: schema }: Schema,
  described: Interface,
): object {
  const byStatus = Map.groupBy(kinds, ({ status }) => status);
  const responses = [...byStatus].flatMap(([status, kinds]) => {
    const own = operations.filter((operation) => errorsOf(operation).some((kind) => kind.status === status));
    if (own.length === 0) return [];
    const headers = own.map((operation) =>
      references(["Cache-Control", ...described.errorsHave[status] ?? []], operation, described)
    );
    const examples = Object.fromEntries(kinds.map((kind) => [kind.code, { value: exampleOf(kind) }]));
    const content = { "application/json": { schema, examples } };
    return [[
      responseName(status),
      { description: meaningsOf(kinds), headers: Object.assign({}, ...headers), content },
    ]];
  });
  const description = "Any other error. Later versions and proxies may send further statuses and codes.";
  const other = { description, content: { "application/json": { schema } } };
  return Object.fromEntries([...responses, [DEFAULT, other]]);
}

/** The name of the error response with this status. */
function responseName(status: number): string {
  return RESPONSE_NAMES[status] ?? `Status${status}`;
}

function meaningsOf(kinds: readonly ErrorKind[]): string {
  return kinds.map(({ code, means, todo }) => `\`${code}\`: ${means} ${todo}`).join("\n\n");
}

/** An Error body. */
function exampleOf({ code, means, status }: ErrorKind): object {
  return { code, message: means, status };
}

/** References to these headers and to those of every response of the operation. */
function references(names: readonly string[], operation: DeclaredOperation, described: Interface): object {
  const all = [...described.allHave, ...names, ...headersOf(operation)];
  return Object.fromEntries(all.map((name) => [name, { $ref: referenceTo(name) }]));
}

function referenceTo(header: string): string {
  return `#/components/headers/${header}`;
}
