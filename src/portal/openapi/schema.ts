import type { NameRule } from "../../http/name.ts";

/** The part of JSON Schema (draft 2020-12) that the document is written in. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly default?: string | number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly maxItems?: number;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: boolean;
  readonly examples?: readonly unknown[];
}

/** An integer of 64 bits. */
export const INT64: Schema = { type: "integer", format: "int64" };

/** A number of something, or of seconds. Limits of the enterprise plan go beyond 32 bits. */
export const COUNT: Schema = { ...INT64, minimum: 0 };

/** A time (RFC 3339). */
export const TIME: Schema = { type: "string", format: "date-time" };

/** The name of something, where one is sent. */
export function nameToSend(what: string, { maxLength, pattern, forbidden }: NameRule): Schema {
  return {
    type: "string",
    minLength: 1,
    maxLength,
    pattern: pattern.source,
    description: `${what}, kept as sent: not white space alone, and without ${forbidden}. Characters are ` +
      "Unicode code points; half a surrogate pair is none.",
  };
}

/** An object with these members, all of them and no others. */
export function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: "object", required: Object.keys(properties), properties, additionalProperties: false };
}
