import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { openApiDocument } from "../../src/portal/openapi/document.ts";

/** An OpenAPI document, as far as it is looked at here. */
export interface Document {
  readonly servers: readonly { readonly url: string }[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly responses: Readonly<Record<string, ResponseObject>>;
    readonly headers: Readonly<Record<string, HeaderObject>>;
  };
}

/** A path of the document with its operations. */
export interface PathItem {
  readonly get?: OperationObject;
  readonly post?: OperationObject;
  readonly patch?: OperationObject;
  readonly delete?: OperationObject;
}

/** An operation of the document. */
export interface OperationObject {
  readonly operationId: string;
  readonly security?: readonly object[];
  readonly requestBody?: { readonly required: boolean };
  readonly responses: Readonly<Record<string, ResponseObject | { readonly $ref: string }>>;
}

/** A response of the document. */
export interface ResponseObject {
  readonly headers: Readonly<Record<string, { readonly $ref: string }>>;
  readonly content?: Readonly<Record<string, { readonly schema: object; readonly examples?: object }>>;
}

interface HeaderObject {
  readonly required?: boolean;
  readonly schema: { readonly type: string };
}

/** The document, as a client reads it. */
export const DOCUMENT: Document = JSON.parse(JSON.stringify(openApiDocument("")));
/** Paths that are no part of the API: what is for people, browsers, robots, load balancers and the operator. */
export const BESIDE_THE_API: readonly string[] = [
  "/",
  "/favicon.ico",
  "/favicon.svg",
  "/robots.txt",
  "/.well-known/security.txt",
  "/docs/deprecations",
  "/health",
  "/ready",
  "/operator",
  "/metrics",
];

/** Headers that any response may have. */
const OF_ALL = /^(content-(type|length)|connection|vary|x-content-type-options|access-control-.*)$/;
const METHODS = ["get", "post", "patch", "delete"] as const;
const ID = "openapi";
const ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true });
formats.default(ajv);
ajv.addVocabulary([...Object.keys(DOCUMENT), "schemas", "code"]);
ajv.addSchema(DOCUMENT, ID);
const validators = new Map<string, ReturnType<typeof ajv.compile>>();

/** An operation with its method and its path from the root. */
export interface Described {
  readonly method: string;
  readonly path: string;
  readonly operation: OperationObject;
}

/** Every operation of the document. */
export const DESCRIBED: readonly Described[] = Object.entries(DOCUMENT.paths).flatMap(([path, item]) =>
  METHODS.flatMap((method) => {
    const operation = item[method];
    return operation ? [{ method: method.toUpperCase(), path: `/v1${path}`, operation }] : [];
  })
).sort((one, other) => one.path.split("{").length - other.path.split("{").length);

/** What is wrong with a value, in words; empty where it is as the schema wants it. */
export function schemaProblems(schema: object, value: unknown): string[] {
  // References lead into the document, wherever the schema is put.
  const text = JSON.stringify(schema).replaceAll('"$ref":"#', `"$ref":"${ID}#`);
  const validate = validators.get(text) ?? ajv.compile(JSON.parse(text));
  validators.set(text, validate);
  if (validate(value)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`.trim());
}

/**
 * Checks that a response is one that the document tells of: its status, its headers and its body. It reads a
 * clone.
 *
 * @param path The path that was asked for; a query does not matter.
 * @throws {Error} that lists what differs.
 */
export async function checkResponse(method: string, path: string, response: Response): Promise<void> {
  const problems = await responseProblems(method, path.split("?", 1)[0] ?? "", response);
  if (problems.length === 0) return;
  const lines = problems.map((problem) => `\n  ${problem}`).join("");
  throw new Error(`${method} ${path} answered ${response.status}, but not as the document says:${lines}`);
}

async function responseProblems(method: string, path: string, response: Response): Promise<string[]> {
  const { status } = response;
  if (BESIDE_THE_API.includes(path) || (method === "OPTIONS" && status === 204)) return [];
  const asked = method === "HEAD" ? "GET" : method;
  const found = DESCRIBED.find((described) => described.method === asked && isPathOf(described.path, path));
  const body = method === "HEAD" ? undefined : await response.clone().text();
  if (!found) {
    if (![400, 401, 404, 405, 429, 500, 503].includes(status)) return ["It is not in the document."];
    return bodyProblems({ $ref: "#/components/schemas/Error" }, body);
  }
  const described = resolve(found.operation.responses[status]);
  if (!described) return ["The operation has no such status."];
  const [[type, content] = ["", undefined]] = Object.entries(described.content ?? {});
  const sent = response.headers.get("content-type")?.split(";", 1)[0] ?? "";
  return [
    ...headerProblems(described, response.headers),
    ...unknownHeaders(described, response),
    ...(sent === type || status === 304
      ? []
      : [`Content-Type is ${sent || "missing"}, not ${type || "left out"}.`]),
    ...(content && type === "application/json" ? bodyProblems(content.schema, body) : []),
    ...(content?.examples && body ? codeProblems(Object.keys(content.examples), body) : []),
    ...(!content && body ? ["It has a body."] : []),
  ];
}

/** Whether the path is of the pattern, such as `/v1/pets/{petId}`. One that cannot be decoded is of none. */
function isPathOf(pattern: string, path: string): boolean {
  try {
    decodeURIComponent(path);
  } catch {
    return false;
  }
  return new RegExp(`^${pattern.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path);
}

function resolve(
  response: ResponseObject | { readonly $ref: string } | undefined,
): ResponseObject | undefined {
  if (!response || !("$ref" in response)) return response;
  return DOCUMENT.components.responses[response.$ref.split("/").at(-1) ?? ""];
}

function headerProblems(described: ResponseObject, headers: Headers): string[] {
  return Object.keys(described.headers).flatMap((name) => {
    const { required, schema } = DOCUMENT.components.headers[name] ?? { schema: { type: "unknown" } };
    const value = headers.get(name);
    if (value === null) return required ? [`${name} is missing.`] : [];
    return schemaProblems(schema, schema.type === "integer" ? Number(value) : value)
      .map((problem) => `${name}: ${problem}`);
  });
}

function unknownHeaders(described: ResponseObject, { status, headers }: Response): string[] {
  const names = Object.keys(described.headers).map((name) => name.toLowerCase());
  return [...headers.keys()]
    .filter((name) => !names.includes(name) && !OF_ALL.test(name))
    // Without a valid Host there is no telling whether the path has limits.
    .filter((name) => status !== 400 || !name.includes("ratelimit"))
    .map((name) => `${name} is not in the document.`);
}

/** An error response has one of the codes that there is an example for. */
function codeProblems(codes: readonly string[], body: string): string[] {
  const { code } = JSON.parse(body);
  return codes.includes(code) ? [] : [`The code ${code} is not in the document.`];
}

function bodyProblems(schema: object, body: string | undefined): string[] {
  if (body === undefined) return [];
  try {
    return schemaProblems(schema, JSON.parse(body));
  } catch (error) {
    return [`The body: ${error}`];
  }
}
