import type { Operation } from "../../openapi/operation.ts";
import type { Schema } from "../../openapi/schema.ts";
import { SCHEMAS } from "../../openapi/schemas.ts";
import { buildRequest } from "../browser/request.ts";
import { curlSample } from "../browser/samples.ts";
import { type Html, html } from "../html.ts";

/** A value of a request: a parameter, or a member of the body. */
export interface Input {
  readonly name: string;
  readonly place: "path" | "query" | "header" | "body";
  readonly isRequired: boolean;
  readonly schema: Schema;
  readonly description: string;
  /** What to begin with; empty to leave it out. */
  readonly example: string;
}

/** Everything that an operation can be told. */
export function inputsOf({ parameters = [], body }: Operation): Input[] {
  const { properties = {}, required = [], examples: [example] = [] }: Schema = body
    ? SCHEMAS[body] ?? {}
    : {};
  const members = new Map(Object.entries(example ?? {}));
  return [
    ...parameters.map(({ name, in: place, required = false, schema, description, example = "" }) => ({
      name,
      place,
      isRequired: required,
      schema: resolve(schema),
      description,
      example: String(example),
    })),
    ...Object.entries(properties).map(([name, property]) => ({
      name,
      place: "body" as const,
      isRequired: required.includes(name),
      schema: resolve(property),
      description: resolve(property).description ?? "",
      example: String(members.get(name) ?? ""),
    })),
  ];
}

function resolve(schema: Schema): Schema {
  const { $ref = "", ...own } = schema;
  return { ...SCHEMAS[$ref.split("/").at(-1) ?? ""], ...own };
}

/** Media type of the operation's body; empty where there is none. */
export function bodyTypeOf({ body, bodyType = "application/json" }: Operation): string {
  return body === undefined ? "" : bodyType;
}

/** The operation as a command, with the examples of what it has to be told. */
export function curlOf(operation: Operation, base: string): string {
  const { method, path } = operation;
  const target = {
    base,
    method,
    path,
    bodyType: bodyTypeOf(operation),
    key: operation.access === "key" ? "API_KEY" : "",
  };
  const fields = inputsOf(operation).map(({ name, place, schema, example }) => ({
    name,
    place,
    type: String(schema.type),
    value: example,
  }));
  return curlSample(buildRequest(target, fields));
}

/** A text to copy. */
export function copyable(id: string, text: string): Html {
  return html`
    <div class="copyable">
      <pre><code id="${id}">${text}</code></pre>
      <button type="button" class="needs-script" data-copy="${id}">Copy</button>
    </div>
  `;
}

/** A method and a path. */
export function endpoint({ method, path }: Operation): Html {
  return html`<span class="method">${method}</span> ${path}`;
}
