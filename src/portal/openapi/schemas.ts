import { ERROR_CODES } from "../../http/error.ts";
import { PET_NAME, PET_STATUSES } from "../../pets/pet.ts";
import { ACCOUNT_SCHEMAS } from "./account_schemas.ts";
import { INT64, nameToSend, object, type Schema, TIME } from "./schema.ts";

const REX = { id: 1, name: "Rex", categoryId: 1, status: "available" };

const categoryId = {
  ...INT64,
  description:
    "Identifier of the category the animal belongs to, an int64 without fraction or exponent, digit for digit. " +
    "JavaScript's `JSON.parse` rounds integers beyond 2^53; to read them exactly, give it a reviver that looks " +
    "at the source: `JSON.parse(text, (key, value, { source }) => key === 'categoryId' ? BigInt(source) : value)`.",
};
const petFields = {
  name: { type: "string", minLength: 1, maxLength: PET_NAME.maxLength, description: "The animal's name" },
  categoryId,
  status: { $ref: "#/components/schemas/PetStatus" },
};
const petFieldsToSend = { ...petFields, name: nameToSend("The animal's name", PET_NAME) };

/** The schemas of the document. Requests may have members that they do not name; responses have not. */
export const SCHEMAS: Readonly<Record<string, Schema>> = {
  PetStatus: { type: "string", enum: PET_STATUSES, description: "Availability status" },
  NewPet: {
    type: "object",
    required: ["name", "categoryId"],
    // No `default` in bodies: generators of clients take a member that has one for required.
    properties: {
      ...petFieldsToSend,
      status: { ...petFields.status, description: "Availability status; available where it is left out" },
    },
    examples: [{ name: "Rex", categoryId: 1 }],
  },
  PetPatch: {
    type: "object",
    properties: petFieldsToSend,
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
    properties: {
      message: {
        type: "string",
        minLength: 1,
        maxLength: 10_000,
        description: "Characters are Unicode code points; the body may have 64 KiB.",
      },
    },
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
  ...ACCOUNT_SCHEMAS,
  Document: { type: "object", description: "An OpenAPI 3.1 document" },
  Error: {
    ...object({
      code: { type: "string", enum: ERROR_CODES, description: "Machine-readable error code" },
      message: { type: "string", description: "Human-readable description" },
      status: { type: "integer", description: "The HTTP status code" },
    }),
    examples: [{ code: "pet_not_found", message: "No animal has this petId.", status: 404 }],
  },
};
