// Checks responses against the OpenAPI document, or against the declaration of the operation.
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { interfaceForClients } from "../../src/app/document_operations.ts";
import { OF_THINGS } from "./things.ts";
import { errorsOf, type Interface, isDocumented, openApiDocument } from "../../src/web/openapi.ts";
import type { DeclaredOperation } from "../../src/web/operation.ts";
import type { JsonSchema } from "../../src/web/schema_types.ts";
import { isJsonObject, stringifyJson } from "../../src/web/json.ts";
import { createMatcher } from "../../src/web/router.ts";

/** The part of an OpenAPI document that is used here. */
export interface Document {
  readonly tags: readonly { readonly name: string }[];
  readonly servers: readonly { readonly url: string }[];
  readonly security: readonly object[];
  readonly paths: Readonly<Record<string, PathItem>>;
  readonly components: {
    readonly responses: Readonly<Record<string, ResponseObject>>;
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly headers: Readonly<Record<string, HeaderObject>>;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
}

/** A path of the document with its operations by method. */
export type PathItem = Readonly<Record<string, OperationObject>>;

/** An operation of the document. */
export interface OperationObject {
  readonly operationId: string;
  readonly deprecated?: boolean;
  readonly security?: readonly object[];
  readonly parameters?: readonly { readonly name: string; readonly required?: boolean }[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, ResponseObject | { readonly $ref: string }>>;
}

/** Bodies by media type. */
export type Content = Readonly<Record<string, { readonly schema: object; readonly example?: unknown }>>;

/** A response of the document. */
export interface ResponseObject {
  readonly headers: Readonly<Record<string, HeaderObject | { readonly $ref: string }>>;
  readonly content?: Content;
}

interface HeaderObject {
  readonly required?: boolean;
  readonly schema: { readonly type: string };
  readonly example?: string | number;
}

/** Headers that any response may have. */
const OF_ALL =
  /^(content-(type|length|encoding)|transfer-encoding|connection|vary|x-content-type-options|access-control-.*)$/;
/** Errors of requests that match no operation. */
const OF_NO_OPERATION: readonly string[] = [
  ...["not_found", "method_not_allowed", "invalid_request", "rate_limit_minute", "rate_limit_day"],
  ...["key_banned", "internal_error", "overloaded", "service_stopping", "store_unavailable"],
];
const ID = "openapi";
const ERROR = { $ref: "#/components/schemas/Error" } as const;

/** An OpenAPI document of a service, and checks of responses against it. */
export class Description {
  /** The document as a client reads it. */
  readonly document: Document;
  readonly #path: string;
  readonly #match: ReturnType<typeof createMatcher<DeclaredOperation>>;
  readonly #ajv: Ajv2020;
  /** By schema and, because many are alike, by its JSON. */
  readonly #validators: Map<object | string, ReturnType<Ajv2020["compile"]>> = new Map();

  /** Creates the document of these operations. Validates its schemas themselves, unless told not to. */
  constructor(
    operations: readonly DeclaredOperation[],
    described: Interface = interfaceForClients(OF_THINGS),
    { validateSchema = true }: { readonly validateSchema?: boolean } = {},
  ) {
    this.#ajv = new Ajv2020({ allErrors: true, strict: true, allowUnionTypes: true, validateSchema });
    const text = stringifyJson(openApiDocument(operations, "", described));
    this.document = JSON.parse(text);
    this.#path = described.path;
    this.#match = createMatcher(operations);
    formats.default(this.#ajv);
    this.#ajv.addVocabulary([...Object.keys(this.document), "schemas", "code", "x-extensible-enum"]);
    // Further fields are allowed by the document, but not in tests.
    const closed = (_name: string, value: unknown) =>
      isJsonObject(value) && isJsonObject(value["properties"])
        ? { ...value, additionalProperties: false }
        : value;
    this.#ajv.addSchema(Object(JSON.parse(text, closed)), ID);
  }

  /** The description of an operation; undefined if the document has none. */
  describes({ method, path }: DeclaredOperation): OperationObject | undefined {
    return this.document.paths[path.replace(this.#path, "")]?.[method.toLowerCase()];
  }

  /** What is wrong with a schema itself, by JSON Schema's own schema; empty if it is valid. */
  faults(schema: object): string[] {
    if (this.#ajv.validateSchema(schema)) return [];
    return (this.#ajv.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  }

  /** Describes how a value differs from the schema; empty if it is valid. */
  problems(schema: object, value: unknown): string[] {
    const validate = this.#validators.get(schema) ?? this.#compile(schema);
    this.#validators.set(schema, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`.trim());
  }

  #compile(schema: object): ReturnType<Ajv2020["compile"]> {
    // References are resolved in the document.
    const text = JSON.stringify(schema).replaceAll('"$ref":"#', `"$ref":"${ID}#`);
    const validate = this.#validators.get(text) ?? this.#ajv.compile(JSON.parse(text));
    this.#validators.set(text, validate);
    return validate;
  }

  /**
   * Checks that an operation declares the response: status, headers and body, and the code of an error.
   * Reads a clone of the response.
   *
   * @param path The path of the request, with or without a query.
   * @throws {Error} if it does not, with the differences.
   */
  async check(method: string, path: string, response: Response): Promise<void> {
    const problems = await this.#responseProblems(method, path.split("?", 1)[0] ?? "", response);
    if (problems.length === 0) return;
    const lines = problems.map((problem) => `\n  ${problem}`).join("");
    throw new Error(
      `${method} ${path} returned ${response.status}, but differs from its declaration:${lines}`,
    );
  }

  async #responseProblems(method: string, path: string, response: Response): Promise<string[]> {
    const { status } = response;
    if (method === "OPTIONS" && status === 204) return [];
    const matched = this.#match(method, path);
    const operation = matched.kind === "found" ? matched.endpoint : undefined;
    const codes = operation ? errorsOf(operation).map(({ code }) => code) : OF_NO_OPERATION;
    const isError = status >= 400;
    const isRead = method !== "HEAD" && (isError || (operation && isDocumented(operation, this.#path)));
    const body = isRead ? await response.clone().text() : undefined;
    const problems = isError ? this.#errorProblems(codes, body) : [];
    if (!operation) return isError ? problems : ["There is no such operation."];
    if (!isDocumented(operation, this.#path)) return problems;
    const described = this.#resolve(this.describes(operation)?.responses[status]);
    if (!described) return ["The operation has no such status.", ...problems];
    const [[type, content] = ["", undefined]] = Object.entries(described.content ?? {});
    const sent = response.headers.get("content-type")?.split(";", 1)[0] ?? "";
    return [
      ...problems,
      ...this.#headerProblems(described, response.headers),
      ...unknownHeaders(described, response),
      ...(sent === type || status === 304
        ? []
        : [`Content-Type is ${sent || "missing"}, not ${type || "absent"}.`]),
      ...(content && type === "application/json" ? this.#bodyProblems(content.schema, body) : []),
      ...(!content && body ? ["It has a body."] : []),
    ];
  }

  /** Checks that the operation declares the code, or that it follows from its access and body. */
  #errorProblems(codes: readonly string[], body: string | undefined): string[] {
    if (body === undefined) return [];
    const [, code = ""] = /^\{"code":"(\w+)"/.exec(body) ?? [];
    if (!codes.includes(code)) return [`The code ${code} is not declared.`];
    // The operators' document lists the codes of operators' operations, which a service may not have.
    return code === "invalid_operator_token" ? [] : this.#bodyProblems(ERROR, body);
  }

  #resolve(response: ResponseObject | { readonly $ref: string } | undefined): ResponseObject | undefined {
    if (!response || !("$ref" in response)) return response;
    return this.document.components.responses[response.$ref.split("/").at(-1) ?? ""];
  }

  #headerProblems(described: ResponseObject, headers: Headers): string[] {
    return Object.entries(described.headers).flatMap(([name, own]) => {
      const { required, schema } = ("$ref" in own ? this.document.components.headers[name] : own) ??
        { schema: { type: "unknown" } };
      const value = headers.get(name);
      if (value === null) return required ? [`${name} is missing.`] : [];
      return this.problems(schema, schema.type === "integer" ? Number(value) : value)
        .map((problem) => `${name}: ${problem}`);
    });
  }

  #bodyProblems(schema: object, body: string | undefined): string[] {
    if (body === undefined) return [];
    try {
      return this.problems(schema, JSON.parse(body));
    } catch (error) {
      return [`The body: ${error}`];
    }
  }
}

function unknownHeaders(described: ResponseObject, { headers }: Response): string[] {
  const names = Object.keys(described.headers).map((name) => name.toLowerCase());
  return [...headers.keys()]
    .filter((name) => !names.includes(name) && !OF_ALL.test(name))
    .map((name) => `${name} is not in the document.`);
}
