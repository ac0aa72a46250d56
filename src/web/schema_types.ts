/** The part of JSON Schema (draft 2020-12) that describes schemas. */
export interface JsonSchema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly (string | null)[];
  /** The known values of a string that can have others. */
  readonly "x-extensible-enum"?: readonly string[];
  readonly default?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly items?: JsonSchema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly additionalProperties?: boolean;
  readonly examples?: readonly unknown[];
}

/** Parses and describes values. */
export interface Schema<out Value = unknown> {
  /** Its description. A named schema has a reference instead. */
  readonly json: JsonSchema;
  /** Its description in responses, if its rules have changed and stored values may break them. */
  readonly outputJson?: JsonSchema;
  /** Descriptions of the schemas that `json` refers to, by name. */
  readonly definitions: Readonly<Record<string, JsonSchema>>;
  /** Whether documents leave out the parameter. */
  readonly isHidden?: true;
  /** Whether the field may be sent, but means nothing. */
  readonly isIgnored?: true;
  /** Names of an object's fields that are ignored. */
  readonly ignored?: readonly string[];
  /** Defaults of an object's fields, by name. */
  readonly defaults?: Readonly<Record<string, unknown>>;
  /** What is wrong with its declaration, each as a phrase such as `must not have a pattern with the flag i`. */
  readonly faults?: readonly string[];
  /** Maximum size of a value as JSON, in bytes; Infinity if it has no bound. */
  readonly maxBytes: number;
  /**
   * Validates a value, which messages call `subject`; if that is empty, they name only its fields. Unknown fields of
   * objects are refused if `isStrict`, else ignored.
   *
   * @throws {Invalid}
   */
  readonly parse: (value: unknown, subject: string, isStrict?: boolean) => Value;
  /** Whether a value has the type. Ignores bounds, because they may have changed since the value was stored. */
  readonly accepts: (value: unknown) => value is Value;
  /**
   * Converts the strings given for a query parameter or a command's option to a value that `parse` can validate.
   *
   * @throws {Invalid}
   */
  readonly fromStrings: (texts: readonly string[], name: string) => unknown;
}

/** The schema of an optional field. */
export interface Optional<out Value> extends Schema<Value | undefined> {
  readonly isOptional: true;
}

/** The schema of a field with a default. */
export interface Defaulted<out Value> extends Schema<Value> {
  readonly defaultValue: Value;
}

/** The type of a schema's values. */
export type Parsed<Of> = Of extends Schema<infer Value> ? Value : never;

/** Schemas by the names of an object's fields, or of parameters. */
export type Members = Readonly<Record<string, Schema>>;

type OptionalNames<Of> = { [Name in keyof Of]: Of[Name] extends Optional<unknown> ? Name : never }[keyof Of];

/** The type of an object with these fields. */
export type ParsedMembers<Of extends Members> =
  & { readonly [Name in Exclude<keyof Of, OptionalNames<Of>>]: Parsed<Of[Name]> }
  & { readonly [Name in OptionalNames<Of>]?: Exclude<Parsed<Of[Name]>, undefined> };

type DefaultedNames<Of> = {
  [Name in keyof Of]: Of[Name] extends Defaulted<unknown> ? Name : never;
}[keyof Of];

/** The type of an object with these fields as clients send it: those with a default may be missing. */
export type SentMembers<Of extends Members> =
  & Omit<ParsedMembers<Of>, DefaultedNames<Of>>
  & { readonly [Name in DefaultedNames<Of>]?: Parsed<Of[Name]> };

/** The documentation of a schema. */
export type Annotations = Pick<JsonSchema, "description" | "examples" | "format" | "x-extensible-enum">;

/** Maximum number of faults that a message shows. */
export const MAX_FAULTS = 5;

/** A value does not match its schema. Each fault is a phrase, such as `name must be a string`. */
export class Invalid extends Error {
  override readonly name = "Invalid";
  readonly faults: readonly string[];
  /** The names and indexes that lead to what the first fault is about; empty if that is the whole value. */
  readonly path: readonly (string | number)[] = [];

  constructor(...faults: readonly string[]) {
    super(faults.join("; "));
    this.faults = faults;
  }

  /** The faults of all these errors. */
  static all(errors: readonly Invalid[]): Invalid {
    const [{ path } = new Invalid()] = errors;
    return Object.assign(new Invalid(...errors.flatMap(({ faults }) => faults)), { path });
  }

  /** The same faults, of a value that has this name or index in another. */
  in(step: string | number): Invalid {
    return Object.assign(new Invalid(...this.faults), { path: [step, ...this.path] });
  }

  /** The name of what the first fault is about, such as `lines[2].cents`; undefined if that is the whole value. */
  get field(): string | undefined {
    if (this.path.length === 0) return undefined;
    return this.path.map((step, index) => {
      if (typeof step === "number") return `[${step}]`;
      return index === 0 ? step : `.${step}`;
    }).join("");
  }
}

/** The error for a missing value or one of the wrong type. */
export function mismatch(
  value: unknown,
  subject: string,
  expected: string,
  type?: JsonSchema["type"],
): Invalid {
  if (value === undefined) return new Invalid(`${subject} is required and must ${expected}`);
  if (type !== "integer") return new Invalid(`${subject} must ${expected}`);
  if (typeof value === "string") return new Invalid(`${subject} must be a number, not a string`);
  if (Number.isNaN(value)) return new Invalid(`${subject} must not have a fraction`);
  return new Invalid(`${subject} must ${expected}`);
}
