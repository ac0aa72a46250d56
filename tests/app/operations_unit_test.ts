import { assertEquals, assertThrows } from "@std/assert";
import { requireValidOperations } from "../../src/app/operations.ts";
import { ResourceError } from "../../src/resource/mod.ts";
import { ACCESS, type Operation } from "../../src/service/mod.ts";
import { type ErrorKind, ERRORS, operation } from "../../src/web/mod.ts";
import { named, object, text } from "../../src/web/schema.ts";

const TAG = { name: "Cups", description: "All cups" };
const CUP_BROKEN: ErrorKind = {
  code: "cup_broken",
  status: 409,
  means: "The cup is broken.",
  todo: "Buy another.",
};

/** An operation that fills a cup, declared otherwise. */
function fill(changes: Partial<Operation> = {}): Operation {
  const declaration = {
    id: "fillCup",
    method: "POST",
    path: "/v1/cups/{cupId}/fill",
    access: ACCESS.key,
    tag: TAG,
    summary: "Fill a cup",
    params: { cupId: text() },
    ...changes,
  } as const;
  return operation(declaration, () => new Response());
}

/** Another operation with the same tag. */
function empty(changes: Partial<Operation> = {}): Operation {
  return fill({ id: "emptyCup", path: "/v1/cups/{cupId}/empty", ...changes });
}

/** Why operations are refused, of which `ofParts` are ids of those of parts; empty if they are not. */
function refusalOf(operations: readonly Operation[], ...ofParts: string[]): string {
  try {
    requireValidOperations(operations, { ofParts: new Set(ofParts), collections: ["cups"] });
    return "";
  } catch (error) {
    if (error instanceof ResourceError) return error.message;
    throw error;
  }
}

Deno.test.each<[fault: string, Partial<Operation>]>([
  ["must declare the parameter cupId of its path in params", { params: {} }],
  ["must not declare the parameter size, which its path lacks", { params: { cupId: text(), size: text() } }],
  [
    "must have whole segments as parameters of its path, such as {id}, not {cupId}.txt",
    { path: "/v1/cups/{cupId}.txt" },
  ],
  ["must not have {cupId} twice in its path", { path: "/v1/cups/{cupId}/{cupId}" }],
  ["must have a path that begins with /, not v1/cups", { path: "v1/cups", params: {} }],
  [
    "must have errors with codes of lower-case letters, digits and _, not Cup-Broken",
    { errors: [{ ...CUP_BROKEN, code: "Cup-Broken" }] },
  ],
  [
    "must have errors with a status from 400 to 599, not 200, as cup_broken has",
    { errors: [{ ...CUP_BROKEN, status: 200 }] },
  ],
  [
    "has an invalid schema: it must not have a pattern with the flag i, which documents cannot show",
    { body: object({ name: text({ pattern: /x/i }) }) },
  ],
  ["must declare collections that there are, not plates", { collections: ["cups", "plates"] }],
])("requireValidOperations() refuses an operation: it %s", (fault, changes) => {
  assertEquals(refusalOf([fill(changes)]), `The operation fillCup ${fault}.`);
  assertEquals(refusalOf([fill(changes)], "fillCup"), `The operation fillCup of a part ${fault}.`);
});

Deno.test("requireValidOperations() requires a tag of parts' operations, unless they are public", () => {
  const { tag: _, ...untagged } = fill();
  const fault =
    "The operation fillCup of a part must have a tag, such as that of a collection: documents leave out " +
    "operations without one.";

  assertEquals(refusalOf([untagged], "fillCup"), fault);
  assertEquals(refusalOf([{ ...untagged, access: ACCESS.operator }], "fillCup"), fault);
  assertEquals(refusalOf([{ ...untagged, access: ACCESS.public }], "fillCup"), "");
  assertEquals(refusalOf([untagged]), "");
});

Deno.test.each<[name: string, Partial<Operation>]>([
  ["the path POST /v1/cups/{cupId}/fill", { path: fill().path }],
  ["the operation fillCup", { id: "fillCup" }],
  ["the tag Cups", { tag: { name: "Cups", description: "Other cups" } }],
  ["the schema Filling", { body: named("Filling", object({})) }],
])(
  "requireValidOperations() refuses operations that share %s, and names a part if one is a part's",
  (name, changes) => {
    const first = fill({ body: named("Filling", object({ millilitres: text() })) });
    const operations = [first, empty(changes)];

    assertEquals(
      refusalOf(operations),
      `A resource shares ${name} with another or the rest of the service: rename it.`,
    );
    for (const part of ["fillCup", empty(changes).id]) {
      assertEquals(
        refusalOf(operations, part),
        `A part shares ${name} with another part, a resource or the rest of the service: rename it.`,
      );
    }
  },
);

Deno.test("requireValidOperations() refuses one code with two meanings, in whichever documents, but not the same twice", () => {
  const errors = [CUP_BROKEN];
  const fault = "The error cup_broken has two meanings: declare it once, or give one another code.";
  const others = [{ ...CUP_BROKEN, status: 410 }, { ...CUP_BROKEN, means: "It leaks." }];

  assertEquals(refusalOf([fill({ errors }), empty({ errors: [{ ...CUP_BROKEN }] })]), "");
  for (const access of [ACCESS.key, ACCESS.operator]) {
    for (const other of others) {
      assertEquals(refusalOf([fill({ errors }), empty({ errors: [other], access })]), fault);
    }
  }
  const ownNotFound = { ...CUP_BROKEN, code: ERRORS.not_found.code };
  assertThrows(
    () => requireValidOperations([fill({ errors: [ownNotFound] })], { ofParts: new Set(), collections: [] }),
    ResourceError,
  );
});
