import {
  answer,
  int64,
  integer,
  list,
  named,
  object,
  oneOf,
  optional,
  type Parsed,
  partial,
  readOnly,
  text,
} from "../web/schema.ts";
import type { ErrorKind } from "../web/error.ts";
import { CONTROLS, nameText } from "../web/name.ts";

export const PET_STATUSES = ["available", "pending", "sold"] as const;

export const PET_STATUS = named(
  "PetStatus",
  oneOf(PET_STATUSES, { description: "Availability status" }),
);

const MAX_NAME_LENGTH = 255;

/** Fields that clients set. */
export const PET_FIELDS = {
  name: nameText(MAX_NAME_LENGTH, [CONTROLS], "The animal's name"),
  categoryId: int64({
    description:
      "Identifier of the category the animal belongs to. An int64, stored exactly. JavaScript's `JSON.parse` rounds integers beyond 2^53. To read them exactly, pass a reviver that uses " +
      "the source text: " +
      "`JSON.parse(text, (key, value, { source }) => key === 'categoryId' ? BigInt(source) : value)`.",
  }),
  status: optional(PET_STATUS, "available"),
};

/** An animal to add. */
export const NEW_PET = named("NewPet", object(PET_FIELDS, { examples: [{ name: "Rex", categoryId: 1 }] }));

const PET_ID = integer(1, Number.MAX_SAFE_INTEGER, {
  format: "int64",
  description: "Unique identifier assigned by the service on creation. It is never reused.",
});

/** A change to an animal. */
export const PET_PATCH = named(
  "PetPatch",
  object({ id: readOnly(PET_ID), ...partial(PET_FIELDS) }, {
    description: "A JSON Merge Patch (RFC 7396). Fields cannot be removed, so none may be null.",
    examples: [{ status: "sold" }],
  }),
);

const REX = { id: 1, name: "Rex", categoryId: 1, status: "available" };

/** Fields of an animal in a response. */
export const PET_MEMBERS = {
  id: PET_ID,
  ...PET_FIELDS,
  // Stored names may break today's rules.
  name: text({ max: MAX_NAME_LENGTH, description: "The animal's name" }),
};

/** An animal in the catalogue. */
export const PET = named("Pet", answer(PET_MEMBERS, { examples: [REX] }));

/** A page of the catalogue. */
export const PETS = named("Pets", list(PET, 100, { examples: [[REX]] }));

/** Errors of operations on an animal. */
export const PET_ERRORS = {
  notYours: {
    code: "not_your_pet",
    status: 403,
    means: "Another account added the animal.",
    todo: "Leave the animal as it is.",
  },
  notFound: {
    code: "pet_not_found",
    status: 404,
    means: "No animal has this id.",
    todo: "List the animals to find the right id.",
  },
} as const satisfies Readonly<Record<string, ErrorKind>>;

/** One of the availability statuses. */
export type PetStatus = Parsed<typeof PET_STATUS>;

/** An animal to add. */
export type NewPet = Parsed<typeof NEW_PET>;

/** A change to an animal. */
export type PetPatch = Parsed<typeof PET_PATCH>;

/** An animal in the catalogue. */
export type Pet = Parsed<typeof PET>;
