import { PLANS } from "../../accounts/plans.ts";
import { ERROR_CODES } from "../../http/error.ts";
import { PET_STATUSES } from "../../pets/pet.ts";

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

const INT64 = { type: "integer", format: "int64" };
const COUNT = { type: "integer", minimum: 0 };
const TIME = { type: "string", format: "date-time" };
const NULLABLE_TIME = { type: ["string", "null"], format: "date-time" };
const REX = { id: 1, name: "Rex", categoryId: 1, status: "available" };

const categoryId = {
  ...INT64,
  description:
    "Identifier of the category the animal belongs to, an int64 without fraction or exponent, digit for digit. " +
    "JavaScript's `JSON.parse` rounds integers beyond 2^53; to read them exactly, give it a reviver that looks " +
    "at the source: `JSON.parse(text, (key, value, { source }) => key === 'categoryId' ? BigInt(source) : value)`.",
};
const petFields = {
  name: {
    type: "string",
    minLength: 1,
    maxLength: 255,
    description: "The animal's name, kept as sent. Characters are Unicode code points.",
  },
  categoryId,
  status: { $ref: "#/components/schemas/PetStatus" },
};
const usageWindow = object({
  used: { ...COUNT, description: "Requests that were let in, and places that are held for others to come." },
  reset: TIME,
});

/** The schemas of the document. Requests may have members that they do not name; responses have not. */
export const SCHEMAS: Readonly<Record<string, Schema>> = {
  PetStatus: { type: "string", enum: PET_STATUSES, description: "Availability status" },
  NewPet: {
    type: "object",
    required: ["name", "categoryId"],
    // No `default` in bodies: generators of clients take a member that has one for required.
    properties: {
      ...petFields,
      status: { ...petFields.status, description: "Availability status; available where it is left out" },
    },
    examples: [{ name: "Rex", categoryId: 1 }],
  },
  PetPatch: {
    type: "object",
    properties: petFields,
    description: "A JSON Merge Patch (RFC 7396). No member can be removed, so none may be null.",
    examples: [{ status: "sold" }],
  },
  Pet: {
    ...object({
      id: {
        ...INT64,
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "Unique identifier assigned by the service on creation, ascending, never used again.",
      },
      ...petFields,
    }),
    examples: [REX],
  },
  Pets: { type: "array", items: { $ref: "#/components/schemas/Pet" }, maxItems: 100, examples: [[REX]] },
  NewMessage: {
    type: "object",
    required: ["message"],
    properties: { message: { type: "string", minLength: 1, maxLength: 10_000 } },
    examples: [{ message: "Is Rex still there?" }],
  },
  Message: {
    ...object({
      id: { type: "string" },
      message: { type: "string" },
      status: { type: "string", const: "queued", description: "The message was only queued." },
      createdAt: TIME,
    }),
    examples: [{
      id: "msg_0hodmpe1xowtHEk3Vq9Zb",
      message: "Is Rex still there?",
      status: "queued",
      createdAt: "2026-11-21T20:47:39.746Z",
    }],
  },
  NewAccount: {
    type: "object",
    required: ["name"],
    properties: {
      name: { type: "string", minLength: 1, maxLength: 100, description: "Without control characters" },
    },
    examples: [{ name: "me" }],
  },
  SignedUpAccount: object({
    id: { type: "string" },
    name: { type: "string" },
    plan: { type: "string", enum: PLANS },
    apiKey: { type: "string", description: "Shown this once." },
  }),
  Account: object({
    id: { type: "string" },
    name: { type: "string" },
    plan: { type: "string", enum: PLANS },
    limits: object({ minute: COUNT, day: COUNT }),
    usage: object({ minute: usageWindow, day: usageWindow }),
    bannedUntil: NULLABLE_TIME,
    createdAt: TIME,
    previousKeyExpiresAt: {
      ...NULLABLE_TIME,
      description: "Until when the key that the last rotation replaced is valid.",
    },
  }),
  KeyRotation: {
    type: "object",
    properties: {
      graceSeconds: {
        type: "integer",
        minimum: 0,
        maximum: 604_800,
        description: "How long the key of the request stays valid; 0 where it is left out.",
      },
    },
    examples: [{ graceSeconds: 3_600 }],
  },
  RotatedKey: object({
    apiKey: { type: "string", description: "Shown this once." },
    previousKeyExpiresAt: NULLABLE_TIME,
  }),
  UsageDays: {
    type: "array",
    items: object({
      date: { type: "string", format: "date" },
      admitted: { ...COUNT, description: "Requests that were admitted, never too low." },
      refused: { ...COUNT, description: "Requests that were refused, at least." },
    }),
  },
  Document: { type: "object", description: "An OpenAPI 3.1 document" },
  Status: object({
    status: { type: "string", enum: ["alive", "ready"] },
    version: { type: "string", description: "Version of the service" },
  }),
  Error: {
    ...object({
      code: { type: "string", enum: ERROR_CODES, description: "Machine-readable error code" },
      message: { type: "string", description: "Human-readable description" },
      status: { type: "integer", description: "The HTTP status code" },
    }),
    examples: [{ code: "pet_not_found", message: "No animal has this petId.", status: 404 }],
  },
};

/** An object with these members, all of them and no others. */
function object(properties: Readonly<Record<string, Schema>>): Schema {
  return { type: "object", required: Object.keys(properties), properties, additionalProperties: false };
}
