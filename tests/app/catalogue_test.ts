import { assertEquals, assertStringIncludes, assertThrows } from "@std/assert";
import {
  type Catalogue,
  type Declaration,
  openCollections,
  type Resource,
  resource,
  ResourceError,
} from "../../src/resource/mod.ts";
import { nameText } from "../../src/web/schema.ts";
import { int64, named, oneOf, optional, text } from "../../src/web/schema.ts";
import { OPERATOR_TOKEN } from "../support/desk.ts";
import { Harness } from "../support/harness.ts";
import { OF_THINGS, THINGS } from "../support/things.ts";

const FIELDS = { name: nameText(9, "Its name"), kind: named("Kind", oneOf(["a", "b"])) };
const CUPS: Omit<Declaration<typeof FIELDS>, "rules" | "extend"> = {
  name: "cups",
  item: "Cup",
  tag: { name: "Cups", description: "All cups" },
  noun: ["a cup", "cups"],
  fields: FIELDS,
  filters: [],
  readableBy: "everyone",
  writableBy: "owner",
  examples: { item: { name: "Big", kind: "a" }, change: {} },
};

/** A collection whose field has another schema of the same name. */
const JUGS = resource({
  ...CUPS,
  name: "jugs",
  item: "Jug",
  fields: { kind: named("Kind", text({ max: 9 })) },
  filters: [],
  readableBy: "everyone",
  writableBy: "owner",
  examples: { item: { kind: "a" }, change: {} },
});

Deno.test.each<[string, readonly Resource[]]>([
  ["the path GET /v1/things", [THINGS]],
  ["the schema Thing", [resource({ ...CUPS, item: "Thing" })]],
  ["the path GET /v1/account", [resource({ ...CUPS, name: "account" })]],
  ["the operation createAccount", [resource({ ...CUPS, item: "Account" })]],
  ["the schema Cup", [resource({ ...CUPS, name: "cup" })]],
  ["the schema Kind", [resource(CUPS), JUGS]],
  ["the schema Error", [
    resource({ ...CUPS, fields: { ...FIELDS, kind: named("Error", oneOf(["a", "b"])) } }),
  ]],
])("createService() refuses resources that share %s", async (shared, others) => {
  using kv = await Deno.openKv(":memory:");

  const error = assertThrows(
    () => new Harness(kv, { catalogue: { ...OF_THINGS, resources: [THINGS, ...others] } }),
    ResourceError,
  );

  assertEquals(
    error.message,
    `A resource shares ${shared} with another or the rest of the service: rename it.`,
  );
});

Deno.test("createService() documents examples and defaults beyond 2^53 digit for digit", async () => {
  const fields = { ean: int64(), weight: optional(int64(), 9007199254740995n) };
  const jugs = resource({
    ...CUPS,
    fields,
    filters: [],
    readableBy: "everyone",
    writableBy: "owner",
    examples: { item: { ean: 9007199254740993n }, change: { ean: 9007199254740993n } },
  });
  const catalogue: Catalogue = { ...OF_THINGS, resources: [jugs] };
  await using service = await Harness.open({ catalogue, operatorToken: OPERATOR_TOKEN });

  await openCollections(service.store, catalogue, { create: true });

  for (const path of ["/v1/openapi.json", "/operator/v1/openapi.json"]) {
    const response = await service.fetch(`GET ${path}`, { key: OPERATOR_TOKEN });
    assertStringIncludes(await response.text(), "9007199254740993");
  }
});
