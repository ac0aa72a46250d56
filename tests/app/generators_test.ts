// What generators of clients need from the OpenAPI documents.
import { assert, assertEquals } from "@std/assert";
import { interfaceForClients } from "../../src/app/document.ts";
import { interfaceForOperators } from "../../src/operator/operations.ts";
import { isJsonObject, type JsonObject } from "../../src/web/json.ts";
import { errorsOf, isDocumented } from "../../src/web/openapi.ts";
import { Description } from "../support/openapi.ts";
import { SAMPLES } from "../support/operations.ts";
import { OF_THINGS } from "../support/things.ts";

const OPERATIONS = SAMPLES.map(({ operation }) => operation);
const REFERENCE = "#/components/responses/";

/** All objects in a part of a document, except examples. */
function objectsIn(part: unknown): JsonObject[] {
  if (Array.isArray(part)) return part.flatMap(objectsIn);
  if (!isJsonObject(part)) return [];
  const inner = Object.entries(part).filter(([name]) => name !== "examples");
  return [part, ...inner.flatMap(([, value]) => objectsIn(value))];
}

for (const described of [interfaceForClients(OF_THINGS), interfaceForOperators(OF_THINGS)]) {
  const { document } = new Description(OPERATIONS, described);
  const { schemas, responses } = document.components;
  const operations = Object.values(document.paths).flatMap((item) => Object.entries(item));

  Deno.test(`patterns in ${described.path} can be read in all languages`, () => {
    const patterns = objectsIn(document).flatMap(({ pattern }) =>
      pattern === undefined ? [] : [`${pattern}`]
    );

    assert(patterns.length > 1);
    assertEquals(patterns.filter((pattern) => /\\(?![dswx])|\\x[89a-f]|\(\?|[^ -~]/i.test(pattern)), []);
  });

  Deno.test(`integers in ${described.path} that need more than 32 bits are int64`, () => {
    const large = objectsIn(document).filter(({ maximum }) => Number(maximum) >= 2 ** 31);

    assert(large.length > 0);
    assertEquals(large.filter(({ format }) => format !== "int64"), []);
  });

  Deno.test(`schemas of ${described.path} have names for which generators for Go can add constructors`, () => {
    const names = Object.keys(schemas);

    assert(names.includes("AccountCreation"));
    assertEquals(names.filter((name) => names.includes(`New${name}`)), []);
  });

  Deno.test(`operations of ${described.path} share one error response for each status, and a default`, () => {
    const names = new Map([["400", "BadRequest"], ["429", "TooManyRequests"], ["default", "Default"]]);

    for (const [, operation] of operations) {
      assert(operation.responses["default"]);
      for (const [status, response] of Object.entries(operation.responses)) {
        if (!("$ref" in response)) continue;
        const name = response.$ref.replace(REFERENCE, "");
        assertEquals([status, name], [status, names.get(status) ?? name]);
        names.set(status, name);
      }
    }
    assertEquals(Object.keys(responses).sort(), [...names.values()].sort());
  });

  Deno.test(`errors of ${described.path} have an open code whose known values include those of proxies`, () => {
    const { type, enum: values, description = "", "x-extensible-enum": known = [] } =
      schemas["Error"]?.properties?.["code"] ?? {};
    const declared = OPERATIONS.filter((operation) => isDocumented(operation, described.path)).flatMap(
      errorsOf,
    );

    assertEquals([type, values], ["string", undefined]);
    const codes = [...declared.map(({ code }) => code), "too_many_connections", "service_unreachable"];
    assertEquals(codes.filter((code) => !known.includes(code)), []);
    assertEquals(known.filter((code) => !description.includes(code)), []);
  });

  Deno.test(`responses of ${described.path} may have further fields`, () => {
    const answers = operations.flatMap(([, { responses }]) => Object.values(responses));
    const referenced = JSON.stringify([answers, responses]).matchAll(/#\/components\/schemas\/(\w+)/g);
    const bodies = [...new Set([...referenced].map(([, name = ""]) => schemas[name]))];

    assert(bodies.length > 4);
    assertEquals(
      objectsIn([answers, bodies]).filter((schema) => schema["additionalProperties"] === false),
      [],
    );
  });

  Deno.test(`PATCH operations of ${described.path} have merge patches, and all have a bearer token`, () => {
    const types = operations.filter(([method]) => method === "patch")
      .map(([, { requestBody }]) => Object.keys(requestBody?.content ?? {}));

    assert(types.length > 0);
    assertEquals(types, types.map(() => ["application/merge-patch+json"]));
    assertEquals([document.security, Object.keys(document.components.securitySchemes)], [[{ bearer: [] }], [
      "bearer",
    ]]);
  });
}
