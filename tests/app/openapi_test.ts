// The OpenAPI documents: what they say is what the service does, and generators of clients can read it.
import { Validator } from "@seriousme/openapi-schema-validator";
import { assert, assertEquals, assertRejects, assertStringIncludes, assertThrows } from "@std/assert";
import { interfaceForClients } from "../../src/app/document_operations.ts";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { planNames } from "../../src/accounts/plans.ts";
import { VERSION } from "../../src/app/version.ts";
import { ACCESS, BASE_PATH } from "../../src/service/mod.ts";
import { interfaceForOperators } from "../../src/operator/operations.ts";
import {
  type Catalogue,
  type Declaration,
  type Resource,
  resource,
  ResourceError,
} from "../../src/resource/mod.ts";
import { ERRORS } from "../../src/web/error.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../src/web/json.ts";
import { errorsOf, inputsOf, isDocumented, openApiDocument } from "../../src/web/openapi.ts";
import { operation } from "../../src/web/operation.ts";
import {
  date,
  int64,
  isValid,
  named,
  oneOf,
  optional,
  resolved,
  type Schema,
  text,
  timestamp,
} from "../../src/web/schema.ts";
import type { JsonSchema } from "../../src/web/schema_types.ts";
import { OWN } from "../catalogue/operations.ts";
import { assertError } from "../support/assertions.ts";
import { FakeKv } from "../support/fake_kv.ts";
import { switchFeed } from "../support/feed.ts";
import { Harness } from "../support/harness.ts";
import { Description, type Document } from "../support/openapi.ts";
import { OF_ROOMS } from "../support/office.ts";
import { ALL, SAMPLES } from "../support/operations.ts";
import { OF_SPECIMENS } from "../support/specimens.ts";
import { OF_THINGS, SUNSET, THINGS } from "../support/things.ts";
import { Workshop } from "../support/workshop.ts";

const OPERATIONS = SAMPLES.map(({ operation }) => operation);
const DESCRIPTION = new Description(OPERATIONS);
const { document: DOCUMENT } = DESCRIPTION;
const DOCUMENTED = SAMPLES.filter(({ operation }) => isDocumented(operation, BASE_PATH));

Deno.test("CHANGES.md starts with the current version, and the document has the version of the API", async () => {
  const changes = await Deno.readTextFile(`${import.meta.dirname}/../../src/CHANGES.md`);
  const { version, license } = OF_THINGS.interface;

  assertEquals(/^## (.+)$/m.exec(changes)?.[1], VERSION);
  const { info } = Object(DOCUMENT);
  assertEquals([info.version, info.license], [version, license]);
});

Deno.test("openApiDocument() describes each operation below /v1 once, and whether it is deprecated and requires a key", () => {
  const below = OPERATIONS.filter(({ path }) => path.startsWith("/v1/"));
  const described = Object.values(DOCUMENT.paths).flatMap((item) => Object.values(item));

  for (const operation of below) {
    const { operationId, security, deprecated = false } = DESCRIPTION.describes(operation) ?? {};
    assertEquals([operationId, security === undefined], [operation.id, operation.access === ACCESS.key]);
    assertEquals(deprecated, operation.deprecated !== undefined);
  }
  assertEquals(described.length, below.length);
});

Deno.test("openApiDocument() has one server for all paths, as client generators expect", () => {
  const { servers, paths } = DOCUMENT;

  assertEquals(servers, [{ url: "/v1" }]);
  const members = Object.values(paths).flatMap((item) => [item, ...Object.values(item)]).flatMap(Object.keys);
  assert(members.includes("operationId"));
  assert(!members.includes("servers"));
});

for (const catalogue of [CATALOGUE, OF_THINGS, OF_ROOMS, OF_SPECIMENS]) {
  for (const described of [interfaceForClients(catalogue), interfaceForOperators(catalogue)]) {
    Deno.test(`the document of ${catalogue.resources[0].nouns.many} in ${described.path} is valid, with all its schemas`, async () => {
      await using service = await Harness.open({ ...ALL, catalogue });
      const description = new Description(service.app.operations, described);
      const { document } = description;

      assertEquals(await new Validator().validate({ ...document }), { valid: true });
      const members = objectsIn([document.paths, document.components]).map(({ schema }) => schema);
      const schemas = [...members.filter(isJsonObject), ...Object.values(document.components.schemas)];
      assert(schemas.length > 50);
      for (const schema of schemas) assertEquals([schema, description.faults(schema)], [schema, []]);
    });
  }
}

/** All objects in a part of a document, except examples. */
function objectsIn(part: unknown): JsonObject[] {
  if (Array.isArray(part)) return part.flatMap(objectsIn);
  if (!isJsonObject(part)) return [];
  const inner = Object.entries(part).filter(([name]) => name !== "example" && name !== "examples");
  return [part, ...inner.flatMap(([, value]) => objectsIn(value))];
}

Deno.test("openApiDocument() has examples that match their schemas", () => {
  const seen = objectsIn(DOCUMENT).flatMap(({ schema, example, examples = [], ...own }) => {
    const values = Array.isArray(examples)
      ? examples
      : Object.values(examples ?? {}).map((some) => some.value);
    return [...(example === undefined ? [] : [example]), ...values]
      .map((value) => ({ value, schema: isJsonObject(schema) ? schema : own }));
  });

  assert(seen.length > 30);
  for (const { schema, value } of seen) {
    assertEquals([value, DESCRIPTION.problems(schema, value)], [value, []]);
  }
});

Deno.test("openApiDocument() has an example of every body, and closes accounts last in their group", () => {
  const described = Object.values(DOCUMENT.paths).flatMap((item) => Object.values(item));
  const bodies = described.flatMap(({ requestBody, responses }) => [
    ...Object.entries(requestBody?.content ?? {}),
    ...Object.values(responses).flatMap((one) => "$ref" in one ? [] : Object.entries(one.content ?? {})),
  ]);
  const ofAccounts = described.filter(({ operationId }) => /Account|Usage|Key$/.test(operationId));

  assert(bodies.length > 10);
  const without = bodies.filter(([, content]) => content.example === undefined);
  assertEquals(without.map(([, { schema }]) => schema), [{ $ref: "#/components/schemas/Document" }]);
  assertEquals(ofAccounts.at(-1)?.operationId, "closeAccount");
});

Deno.test("openApiDocument() has absolute URLs of its own collections as examples, and none of what some responses lack", () => {
  const examplesOf = (of: string, status: number, base = "") => {
    const document: Document = Object(openApiDocument(OPERATIONS, base, interfaceForClients(OF_THINGS)));
    const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
    const response = operations.find(({ operationId }) => operationId === of)?.responses[status];
    assert(response && "headers" in response);
    return Object.fromEntries(
      Object.entries(response.headers).map(([name, header]) =>
        [name, "$ref" in header ? document.components.headers[name]?.example : header.example] as const
      ),
    );
  };
  const item = "https://api.example/v1/things/1";

  const created = examplesOf("createThing", 201);
  assertEquals([created["Location"], created["Content-Location"]], [item, item]);
  assertEquals(
    examplesOf("createThing", 201, "https://me.example")["Location"],
    "https://me.example/v1/things/1",
  );
  for (const name of ["Idempotency-Replayed", "Preference-Applied"]) assertEquals(created[name], undefined);
  assertEquals(examplesOf("listThings", 200)["Link"], undefined);
  const { Link, Deprecation, Sunset } = examplesOf("getThing", 200);
  assertEquals([Deprecation, Sunset], ["@1738281600", new Date(SUNSET).toUTCString()]);
  const [about, instead] = ["https://api.example/docs/deprecations", "https://api.example/v1/things"];
  assertEquals(
    Link,
    `<${about}>; rel="deprecation"; type="text/plain", <${instead}>; rel="successor-version"`,
  );
  assertEquals(
    /"name":"Prefer"[^}]*\}[^}]*\}/.exec(JSON.stringify(DOCUMENT))?.[0].includes("example"),
    false,
  );
});

Deno.test("openApiDocument() says which key each operation needs, and that others get 403", () => {
  const needs = DOCUMENTED.filter(({ operation: { access } }) => access === ACCESS.key).map(
    ({ operation }) => {
      const description = JSON.stringify(DESCRIPTION.describes(operation));
      const [sentence] = /(?:An added key needs|Only the first key)[^.]*/.exec(description) ?? [];
      return [operation.id, sentence, errorsOf(operation).some(({ code }) => code === "key_scope")];
    },
  );
  const read = "An added key needs the scope `read`";
  const write = "An added key needs the scope `read/write`";
  const ofThings = " and, if it is restricted to collections, `things`";
  const first = "Only the first key of the account can do this";

  assertEquals(needs.filter(([id]) => /Things?$|Keys?$|Account$|Usage$/.test(`${id}`)), [
    ["listThings", read + ofThings, true],
    ["createThing", write + ofThings, true],
    ["getThing", read + ofThings, true],
    ["updateThing", write + ofThings, true],
    ["deleteThing", write + ofThings, true],
    ["getAccount", read, false],
    ["listKeys", first, true],
    ["addKey", first, true],
    ["revokeKey", first, true],
    ["rotateKey", first, true],
    ["getUsage", read, false],
    ["closeAccount", first, true],
  ]);
});

Deno.test("openApiDocument() and inputsOf() mark the required parameters", () => {
  const declared = operation({
    id: "getWord",
    method: "GET",
    path: "/v1/words/{word}",
    access: ACCESS.public,
    tag: { name: "Words", description: "Some words" },
    summary: "Get a word",
    params: { word: text() },
    query: { language: text(), page: optional(text(), "1"), author: optional(text()) },
  }, () => new Response());

  const { parameters = [] } = new Description([declared]).describes(declared) ?? {};
  assertEquals(parameters.length, 4);
  const marked = parameters.filter(({ required }) => required).map(({ name }) => name);
  assertEquals(marked, ["word", "language"]);
  const inputs = inputsOf(declared).filter(({ isRequired }) => isRequired).map(({ name }) => name);
  assertEquals(inputs, ["word", "language"]);
});

Deno.test("openApiDocument() has the parameters that operations accept, and marks those of extensions", () => {
  const marked: string[] = [];
  for (const { operation } of DOCUMENTED) {
    const { id, body, errors, headers } = operation;
    const { parameters = [], responses } = DESCRIPTION.describes(operation) ?? {};
    const names = parameters.map(({ name }) => name);
    const inputs = inputsOf(operation).filter(({ place }) => place !== "body").map(({ name }) => name);
    const isLenient = "Prefer" in headers;
    const acceptsKeys = errors.includes(ERRORS.idempotency_key_reused);

    assertEquals([id, inputs.toSorted()], [id, names.toSorted()]);
    assertEquals([id, names.includes("Idempotency-Key")], [id, acceptsKeys]);
    assertEquals([id, names.includes("Prefer")], [id, isLenient]);
    assertEquals(JSON.stringify(responses).includes("Preference-Applied"), isLenient);
    if (body) assertEquals(resolved(body).additionalProperties, isLenient ? undefined : false);
    if (!isLenient || operation.tag !== THINGS.tag) continue;
    const added = parameters.filter((one) => JSON.stringify(one).includes("not part of the original"));
    marked.push(`${id}: ${added.map(({ name }) => name).join()}`);
  }

  assertEquals(marked, [
    "listThings: cursor,If-None-Match,Prefer,sort",
    "createThing: Idempotency-Key,Prefer",
    "getThing: If-None-Match,Prefer",
  ]);
});

Deno.test("openApiDocument() has new parameters last, because generated clients pass them by position", () => {
  const orderOf = (of: string, described = interfaceForClients(OF_THINGS)) => {
    const description = new Description(OPERATIONS, described);
    const [operation] = OPERATIONS.filter(({ id }) => id === of);
    assert(operation);
    return description.describes(operation)?.parameters?.map(({ name }) => name);
  };

  assertEquals(orderOf("listThings"), [
    ...["limit", "state", "isSpare", "cursor", "If-None-Match", "Prefer", "sort"],
  ]);
  assertEquals(orderOf("createThing"), ["Idempotency-Key", "Prefer"]);
  assertEquals(orderOf("updateThing"), ["thingId", "If-Match", "If-None-Match"]);
  assertEquals(orderOf("listOwnedThings", interfaceForOperators(OF_THINGS)), ["limit", "cursor", "sort"]);
});

/** Values at the bounds of a schema and just beyond them. Strings ignore patterns. */
function boundaryValues(
  { type: types, enum: values, minLength, maxLength, minimum, maximum, minItems = 0, maxItems = 1, items }:
    JsonSchema,
): { good: readonly unknown[]; bad: readonly unknown[] } {
  const [type] = [types].flat();
  if (values) return { good: values, bad: ["x"] };
  if (type === "boolean") return { good: [true, false], bad: ["yes", 1] };
  if (type === "array") {
    const [item = "x"] = boundaryValues(items ?? {}).good;
    const list = (length: number) => new Array(length).fill(item);
    const few = minItems > 0 ? [list(minItems - 1)] : [];
    return { good: [list(minItems), list(maxItems)], bad: [...few, list(maxItems + 1)] };
  }
  assert(type === "string" || type === "integer", `No bounds are known for ${type}`);
  const [low, high] = type === "string" ? [minLength, maxLength] : [minimum, maximum];
  if (low === undefined || high === undefined) return { good: [], bad: [] };
  const valueOf = (edge: number) => type === "string" ? "x".repeat(edge) : edge;
  return { good: [low, high].map(valueOf), bad: [low - 1, high + 1].map(valueOf) };
}

for (const { operation, target, status } of DOCUMENTED) {
  const { id, path, query, body } = operation;
  const inputs = inputsOf(operation).filter(({ place }) => place === "query" || place === "body");
  if (inputs.length === 0) continue;
  Deno.test(`openApiDocument() describes the query and body that ${id}() accepts`, async () => {
    await using workshop = await Workshop.open(ALL);
    await workshop.add({});
    await switchFeed(workshop);
    const example = body && resolved(body).examples?.[0];
    let count = 0;
    /** Sends a request, of another address each time and, unless it changes a thing, of another account. */
    const send = async (search: string, member: object) => {
      workshop.address = `192.0.2.${count++}`;
      const key = path.includes("{") ? workshop.key : (await workshop.createAccount()).apiKey;
      const json = body && { ...Object(example), ...member };
      return await workshop.fetch(target + search, { key, json });
    };

    for (const { name, place, isRequired, schema } of inputs) {
      const outcomeOf = async (value: unknown) => {
        const sent = place === "query" ? send(`?${name}=${value}`, {}) : send("", { [name]: value });
        const response = await sent;
        if (response.status === 400) return "bad";
        // What the request of an adopter's operation is about is missing.
        return response.ok || id in OWN ? "good" : `${response.status}`;
      };
      if (place === "query" && query[name]?.json.type !== "array") {
        const twice = RegExp(`^The query parameter ${name} must be given at most once`);
        await assertError(await send(`?${name}=1&${name}=1`, {}), 400, "invalid_request", twice);
      }
      if (place === "body") {
        const absent = [await outcomeOf(undefined), await outcomeOf(null)];
        assertEquals(absent, [isRequired ? "bad" : "good", Array.isArray(schema.type) ? "good" : "bad"]);
      }
      for (const [outcome, values] of Object.entries(boundaryValues(schema))) {
        for (const value of values) {
          assertEquals([name, value, await outcomeOf(value)], [name, value, outcome]);
        }
      }
    }
    const { required } = DESCRIPTION.describes(operation)?.requestBody ?? {};
    if (required === undefined || id in OWN && !required) return;
    assertEquals((await workshop.call(target)).status, required ? 400 : status);
  });
}

const USUAL = [
  ...["Hammer", "  Hammer ", "\u3000犬", "🐶", "a\u00adb", "'\"\\/$^", "e\u0301", "\u200b", "\u2028x"],
  ..."\u061b \u200d \u2010 \u202f \u2065 \u206a \u00a0 ~".split(" ").map((text) => `Hammer${text}`),
  "x".repeat(100),
];
const BLANK = ["", " ", " ".repeat(100), "a\u0000", "\u001b[2J", "a\tb", "a\n", "\r", "\u007fa"];
const BEYOND_ASCII = ["\u00a0\u3000\u2003", "\ufeff", "\u2028\u2029", "\u0080", "\u0085a", "a\u009f"];
const TURNED = "\u061c \u200e \u200f \u202a \u202b \u202c \u202d \u202e \u2066 \u2067 \u2068 \u2069"
  .split(" ").map((text) => `Hammer${text}`);

/** Names of things and of accounts: valid ones, invalid ones, and those that are refused although documents allow them. */
const NAMES: Readonly<Record<"thing" | "account", readonly (readonly unknown[])[]>> = {
  thing: [
    [...USUAL, ...TURNED, "x".repeat(101), "🐶".repeat(255)],
    [...BLANK, "🐶".repeat(256), null, 7],
    BEYOND_ASCII,
  ],
  account: [USUAL, [...BLANK, "x".repeat(101), "🐶".repeat(256), null, 7], [...BEYOND_ASCII, ...TURNED]],
};

/** A schema, and JSON texts: valid ones, invalid ones, and those that are refused although the document allows them. */
type Values = readonly [what: string, Schema, ...values: readonly (readonly string[])[]];

const VALUES: readonly Values[] = [
  ...DOCUMENTED.flatMap(({ operation: { id, body, tag } }): Values[] => {
    if (!body || !resolved(body).properties?.["name"]) return [];
    const example = Object(resolved(body).examples?.[0]);
    const values = NAMES[tag === THINGS.tag ? "thing" : "account"];
    return [[
      `names in ${id}()`,
      // The operation also accepts a name as the item has it, whatever that is.
      id === "updateThing" ? THINGS.schemas.patch : body,
      ...values.map((names) => jsonOf(names.map((name) => ({ ...example, name })))),
    ]];
  }),
  [
    "date",
    date(),
    jsonOf(["0001-01-01", "2000-02-29", "2027-12-31", "2028-02-29", "9999-12-31"]),
    jsonOf([
      ...["1900-02-29", "2027-02-29", "2027-02-30", "2027-04-31", "2027-01-00", "2027-00-01", "2027-13-01"],
      "+02027-01-01",
    ]),
    jsonOf(["0000-01-01"]),
  ],
  [
    "date-time",
    timestamp(),
    jsonOf([
      ...["0001-01-01T00:00:00Z", "2028-02-29T23:59:59Z", "2027-12-31T00:00:00.123456789+14:00"],
      ...["9999-12-31T23:59:59.9-13:59", "2027-01-15T12:00:00-00:00"],
    ]),
    jsonOf([
      ...["2027-02-29T00:00:00Z", "2027-02-30T00:00:00Z", "2027-04-31T00:00:00Z", "2027-13-01T00:00:00Z"],
      ...["2027-01-15T24:00:00Z", "2027-01-15T23:60:00Z", "2027-01-15T12:00:60Z", "2027-01-15T12:00:00"],
      ...["2027-01-15T12:00:00+24:00", "2027-01-15T12:00:00+01:60", "2027-01-15T12:00Z", "2027-01-15"],
    ]),
    jsonOf([
      ...["2016-12-31T23:59:60Z", "2027-01-15 12:00:00Z", "2027-01-15T12:00:00.1234567890Z"],
      ...["0000-01-01T00:00:00Z", "2027-01-15t12:00:00Z", "2027-01-15T12:00:00z"],
      ...["2027-01-15T12:00:00+14:01", "2027-01-15T12:00:00-15:00", "2027-01-15T12:00:00+23:59"],
    ]),
  ],
  [
    "int64",
    int64(),
    ["9223372036854775807", "-9223372036854775808", "1.0", "1e3"],
    ["1.5", '"1"', "true"],
    ["9223372036854775808", "-9223372036854775809"],
  ],
];

function jsonOf(values: readonly unknown[]): string[] {
  return values.map((value) => JSON.stringify(value));
}

for (const [what, schema, valid = [], invalid = [], refused = []] of VALUES) {
  Deno.test(`service accepts ${what} at the edges only if the document allows it`, () => {
    const isAccepted = (text: string) => isValid(schema, parseJson(text));
    const isAllowed = (text: string) => DESCRIPTION.problems(schema.json, JSON.parse(text)).length === 0;

    for (const text of valid) assertEquals([text, isAccepted(text), isAllowed(text)], [text, true, true]);
    for (const text of invalid) assertEquals([text, isAccepted(text), isAllowed(text)], [text, false, false]);
    for (const text of refused) assertEquals([text, isAccepted(text), isAllowed(text)], [text, false, true]);
  });
}

Deno.test("openApiDocument() has no pattern for names in responses, because rows may hold others", () => {
  const { Thing, ThingCreation } = DOCUMENT.components.schemas;

  assert(ThingCreation?.properties?.["name"]?.pattern);
  assertEquals(Thing?.properties?.["name"]?.pattern, undefined);
});

Deno.test("Description.check() rejects a status, header, type or body that is not in the document", async () => {
  await using workshop = await Workshop.open();
  const good = await workshop.call("GET /v1/things");
  const refusal = await workshop.call("GET /v1/things?limit=0");
  const refused = await refusal.clone().json();
  const { "x-ratelimit-reset": _, ...without } = Object.fromEntries(good.headers);
  const changed = (more: object) => ({ headers: { ...Object.fromEntries(good.headers), ...more } });
  const check = (response: Response, path = "/v1/things") => DESCRIPTION.check("GET", path, response);

  await check(good);
  await check(good, "/v1/things?limit=1");
  await check(refusal);
  await assertRejects(() => check(good, "/v1/other"), Error, "no such operation");
  for (
    const [response, problem] of [
      [new Response("[]", { status: 202, ...changed({}) }), "no such status"],
      [new Response("[]", { headers: without }), "X-RateLimit-Reset is missing"],
      [new Response("[]", changed({ "x-secret": "1" })), "x-secret is not in the document"],
      [new Response("[]", changed({ "content-type": "text/html" })), "Content-Type is text/html"],
      [new Response('[{"id":0}]', changed({})), "/0/id must be >= 1"],
      [new Response("[", changed({})), "SyntaxError"],
      [
        Response.json({ ...refused, code: "thing_not_found" }, refusal),
        "The code thing_not_found is not declared",
      ],
    ] as const
  ) {
    await assertRejects(() => check(response), Error, problem);
  }
});

const REFERENCE = "#/components/responses/";

/** The fields in a schema, by their paths, that have no description. */
function undescribed(schema: Pick<Schema, "json" | "definitions">, path: string): string[] {
  const { properties = {}, items } = resolved(schema);
  if (items) return undescribed({ ...schema, json: items }, path);
  return Object.entries(properties).flatMap(([name, json]) => {
    const inner = { ...schema, json };
    const own = `${path}.${name}`;
    return [...resolved(inner).description ? [] : [own], ...undescribed(inner, own)];
  });
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
    const declared = OPERATIONS.filter((own) => isDocumented(own, described.path)).flatMap(errorsOf);

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
    const objects = objectsIn([answers, bodies]).filter(({ type }) => type === "object");
    assertEquals(objects.filter((schema) => schema["additionalProperties"] !== true), []);
    const { plan } = schemas["Account"]?.properties ?? {};
    assertEquals([plan?.type, plan?.enum, plan?.["x-extensible-enum"]], [
      "string",
      undefined,
      planNames(OF_THINGS.plans),
    ]);
  });

  Deno.test(`response fields of ${described.path} all have a description`, () => {
    const bodies = OPERATIONS.filter((own) => isDocumented(own, described.path)).flatMap(({ id, answers }) =>
      Object.values(answers).flatMap(({ body }) => body ? [[id, body] as const] : [])
    );

    assert(bodies.length > 10);
    assertEquals(bodies.flatMap(([id, body]) => undescribed(body, id)), []);
  });

  Deno.test(`PATCH operations of ${described.path} have merge patches, and all have a bearer token`, () => {
    const types = operations.filter(([method]) => method === "patch")
      .map(([, { requestBody }]) => Object.keys(requestBody?.content ?? {}));

    assert(types.length > 0);
    assertEquals(types, types.map(() => ["application/merge-patch+json"]));
    assertEquals(document.security, [{ bearer: [] }]);
    assertEquals(Object.keys(document.components.securitySchemes), ["bearer"]);
  });
}

/** Declares a kind of cups. */
type Cups = Omit<Declaration<{ kind: Schema<string> }>, "rules" | "extend">;

const CUPS: Cups = {
  name: "cups",
  item: "Cup",
  tag: { name: "Cups", description: "All cups" },
  noun: ["a cup", "cups"],
  fields: { kind: named("Kind", oneOf(["a", "b"])) },
  filters: [],
  readableBy: "everyone",
  writableBy: "owner",
  examples: { item: { kind: "a" }, change: {} },
};
const JUGS: Cups = { ...CUPS, name: "jugs", item: "Jug" };

Deno.test.each<[string, readonly Resource[]]>([
  ["the path GET /v1/things", [THINGS]],
  ["the schema Thing", [resource({ ...CUPS, item: "Thing" })]],
  ["the path GET /v1/account", [resource({ ...CUPS, name: "account" })]],
  ["the operation createAccount", [resource({ ...CUPS, item: "Account" })]],
  ["the schema Cup", [resource({ ...CUPS, name: "cup" })]],
  ["the schema Kind", [resource(CUPS), resource({ ...JUGS, fields: { kind: named("Kind", text()) } })]],
  ["the schema Error", [resource({ ...CUPS, fields: { kind: named("Error", oneOf(["a", "b"])) } })]],
])("createService() refuses resources that share %s", (shared, others) => {
  const catalogue: Catalogue = { ...OF_THINGS, resources: [THINGS, ...others] };

  const error = assertThrows(() => new Harness(new FakeKv().connect(), { catalogue }), ResourceError);

  assertEquals(
    error.message,
    `A resource shares ${shared} with another or the rest of the service: rename it.`,
  );
});

Deno.test("createService() documents a tag once that two collections declare alike", () => {
  const resources = [CUPS, JUGS].map((declaration) => resource({ ...declaration, tag: { ...CUPS.tag } }));
  const catalogue: Catalogue = { ...OF_THINGS, resources: [THINGS, ...resources] };
  const { app } = new Harness(new FakeKv().connect(), { catalogue });

  const { document } = new Description(app.operations, interfaceForClients(catalogue));

  const names = document.tags.map(({ name }) => name);
  assertEquals(names.filter((name) => name === "Cups"), ["Cups"]);
});

Deno.test("createService() documents examples and defaults beyond 2^53 digit for digit", async () => {
  const fields = { ean: int64(), weight: optional(int64(), 9007199254740995n) };
  const examples = { item: { ean: 9007199254740993n }, change: { ean: 9007199254740993n } };
  const jugs = resource({
    ...{ name: "jugs", item: "Jug", tag: CUPS.tag, noun: CUPS.noun, fields, filters: [], examples },
    ...{ readableBy: "everyone", writableBy: "owner" },
  });
  await using service = await Harness.open({ ...ALL, catalogue: { ...OF_THINGS, resources: [jugs] } });

  for (const path of ["/v1/openapi.json", "/operator/v1/openapi.json"]) {
    const text = await (await service.fetch(`GET ${path}`, { key: ALL.operatorToken })).text();
    for (const number of ["9007199254740993", "9007199254740995"]) assertStringIncludes(text, number);
  }
});
