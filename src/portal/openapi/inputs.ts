import type { Operation } from "./operation.ts";
import type { Schema } from "./schema.ts";
import { SCHEMAS } from "./schemas.ts";

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
