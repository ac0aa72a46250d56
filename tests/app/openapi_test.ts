import { BASE_PATH } from "../../src/resource/interface.ts";
import { ACCESS } from "../../src/resource/access.ts";
import { assert, assertEquals, assertRejects } from "@std/assert";
import { errorsOf, inputsOf, isDocumented } from "../../src/web/openapi.ts";
import { operation } from "../../src/web/operation.ts";
import {
  date,
  int64,
  isValid,
  optional,
  resolved,
  type Schema,
  text,
  timestamp,
} from "../../src/web/schema.ts";
import { interfaceForOperators } from "../../src/operator/operations.ts";
import { parseJson } from "../../src/web/json.ts";
import type { JsonSchema } from "../../src/web/schema_types.ts";
import { hasValidHost } from "../../src/app/request.ts";
import { ERRORS } from "../../src/web/error.ts";
import { assertError } from "../support/assertions.ts";
import { Harness } from "../support/harness.ts";
import { Description } from "../support/openapi.ts";
import { addKnownAccounts, SAMPLES } from "../support/operations.ts";
import { Workshop } from "../support/workshop.ts";
import { PROVOCATIONS, provoke } from "./provocations.ts";
import { OF_THINGS } from "../support/things.ts";

/** Codes of failures of the service or its store, and of a body that takes ten seconds. They are not provoked here. */
const NOT_PROVOKED: readonly string[] = ["internal_error", "store_unavailable", "request_timeout"];
const DESCRIPTION = new Description(SAMPLES.map(({ operation }) => operation));
const { document: DOCUMENT } = DESCRIPTION;
const DOCUMENTED = SAMPLES.filter(({ operation }) => isDocumented(operation, BASE_PATH));

Deno.test("openApiDocument() describes each operation below /v1 once, and whether it requires a key", () => {
  const below = SAMPLES.filter(({ operation }) => operation.path.startsWith("/v1/"));
  const described = Object.values(DOCUMENT.paths).flatMap((item) => Object.values(item));

  for (const { operation } of below) {
    const { operationId, security } = DESCRIPTION.describes(operation) ?? {};
    assertEquals([operationId, security === undefined], [operation.id, operation.access === ACCESS.key]);
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

for (const sample of SAMPLES) {
  const { id, isForMonitoring } = sample.operation;
  Deno.test(`${id}() can return every error that it declares`, async () => {
    for (const { code, status } of errorsOf(sample.operation)) {
      // A service that stops still answers monitoring.
      if (NOT_PROVOKED.includes(code) || (isForMonitoring && code === "service_stopping")) continue;
      const provocation = PROVOCATIONS[code];
      assert(provocation, `${code} cannot be provoked`);
      await assertError(await provoke(provocation, sample), status, code);
    }
  });
}

Deno.test("operations declare every error of ERRORS except those of no operation, and no code twice", () => {
  const declared = new Set(SAMPLES.flatMap(({ operation }) => errorsOf(operation)));

  assertEquals(Object.values(ERRORS).filter((kind) => !declared.has(kind)), [ERRORS.method_not_allowed]);
  assertEquals(new Set([...declared].map(({ code }) => code)).size, declared.size);
});

Deno.test("openApiDocument() has examples that match their schemas", () => {
  const seen = examples(DOCUMENT);

  assert(seen.length > 30);
  for (const { schema, example } of seen) {
    assertEquals([example, DESCRIPTION.problems(schema, example)], [example, []]);
  }
});

Deno.test("openApiDocument() and inputsOf() mark the required parameters", () => {
  const words = { description: "A word" };
  const declared = operation({
    id: "getWord",
    method: "GET",
    path: "/v1/words/{word}",
    access: ACCESS.public,
    tag: { name: "Words", description: "Some words" },
    summary: "Get a word",
    params: { word: text(words) },
    query: { language: text(words), page: optional(text(words), "1"), author: optional(text()) },
  }, () => new Response());
  const required = ["word", "language"];

  const { parameters = [] } = new Description([declared]).describes(declared) ?? {};
  assertEquals(parameters.filter(({ required }) => required).map(({ name }) => name), required);
  assertEquals(parameters.length, 4);
  const inputs = inputsOf(declared).filter(({ isRequired }) => isRequired);
  assertEquals(inputs.map(({ name }) => name), required);
});

Deno.test("openApiDocument() and inputsOf() have the same parameters, and only accepted ones", () => {
  for (const { operation } of DOCUMENTED) {
    const { parameters = [] } = DESCRIPTION.describes(operation) ?? {};
    const names = inputsOf(operation).filter(({ place }) => place !== "body").map(({ name }) => name);

    assertEquals(names, parameters.map(({ name }) => name));
    const acceptsKeys = ["createThing", "createMessage"].includes(operation.id);
    assertEquals([operation.id, names.includes("Idempotency-Key")], [operation.id, acceptsKeys]);
  }
});

/** Values at the bounds of a schema and just beyond them. Strings ignore patterns. */
function boundaryValues(
  { type: types, enum: values, minLength, maxLength, maxItems, items, ...bounds }: JsonSchema,
): {
  good: readonly unknown[];
  bad: readonly unknown[];
} {
  const [type] = [types].flat();
  if (values) return { good: values, bad: ["x"] };
  if (type === "boolean") return { good: [true, false], bad: ["yes", 1] };
  if (type === "array") {
    const [item] = boundaryValues(items ?? {}).good;
    const lengths = (...lengths: number[]) => lengths.map((length) => new Array(length).fill(item ?? "x"));
    return { good: lengths(0, maxItems ?? 1), bad: lengths((maxItems ?? 1) + 1) };
  }
  assert(type === "string" || type === "integer", `No bounds are known for ${type}`);
  const { minimum, maximum } = bounds;
  const [low, high] = type === "string" ? [minLength, maxLength] : [minimum, maximum];
  if (low === undefined || high === undefined) return { good: [], bad: [] };
  const valueOf = (edge: number) => type === "string" ? "x".repeat(edge) : edge;
  return { good: [low, high].map(valueOf), bad: [low - 1, high + 1].map(valueOf) };
}

for (const { operation, target } of DOCUMENTED) {
  const { id, query, body } = operation;
  const inputs = inputsOf(operation).filter(({ place }) => place === "query" || place === "body");
  if (inputs.length === 0) continue;
  Deno.test(`openApiDocument() describes the query and body that ${id}() accepts`, async () => {
    await using workshop = await Workshop.open();
    const example = body && resolved(body).examples?.[0];
    let count = 0;
    const send = async (search: string, member: object) => {
      workshop.address = `192.0.2.${count++}`;
      await workshop.add({ state: "new" });
      const { apiKey } = await workshop.createAccount();
      const key = /\{/.test(operation.path) ? workshop.key : apiKey;
      const path = target.replace(/\/1$/, `/${count}`);
      return await workshop.fetch(path + search, {
        key,
        ...(body ? { json: { ...Object(example), ...member } } : {}),
      });
    };

    for (const { name, place, isRequired, schema } of inputs) {
      const inQuery = place === "query";
      const outcomeOf = async (value: unknown) => {
        const { ok, status } = await (inQuery ? send(`?${name}=${value}`, {}) : send("", { [name]: value }));
        return ok ? "good" : status === 400 ? "bad" : `${status}`;
      };
      const outcomesOf = async (values: readonly unknown[]) => {
        const outcomes: string[] = [];
        for (const value of values) outcomes.push(await outcomeOf(value));
        return new Set(outcomes);
      };
      if (inQuery && query[name]?.json.type !== "array") {
        const twice = await send(`?${name}=1&${name}=1`, {});
        await assertError(
          twice,
          400,
          "invalid_request",
          RegExp(`^The query parameter ${name} must be given at most once`),
        );
      }
      if (!inQuery) {
        assertEquals([await outcomeOf(undefined), await outcomeOf(null)], [
          isRequired ? "bad" : "good",
          Array.isArray(schema.type) ? "good" : "bad",
        ]);
      }
      const { good, bad } = boundaryValues(schema);
      assertEquals([name, await outcomesOf(good)], [name, new Set(good.map(() => "good"))]);
      assertEquals([name, await outcomesOf(bad)], [name, new Set(bad.map(() => "bad"))]);
    }
  });
}

/** Names, and whether each is valid for a thing and for an account; `refused` if the document does not tell. */
const NAMES: readonly [name: unknown, thing: string, account: string][] = [
  ...[
    "Hammer",
    "  Hammer ",
    "\u3000犬",
    "🐶",
    "a\u00adb",
    "'\"\\/$^",
    "e\u0301",
    "\u200b",
    "\u2028x",
    "x".repeat(100),
  ]
    .map((name): [string, string, string] => [name, "good", "good"]),
  ...["", " ", " ".repeat(100), "a\u0000", "\u001b[2J", "a\tb", "a\n", "\r", "\u007fa"]
    .map((name): [string, string, string] => [name, "bad", "bad"]),
  ...["\u00a0\u3000\u2003", "\ufeff", "\u2028\u2029", "\u0080", "\u0085a", "a\u009f"]
    .map((name): [string, string, string] => [name, "refused", "refused"]),
  ...[0x61c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069]
    .map((code): [string, string, string] => [`Hammer${String.fromCodePoint(code)}`, "good", "refused"]),
  ...[0x61b, 0x200d, 0x2010, 0x202f, 0x2065, 0x206a, 0xa0, 0x7e].map((code): [string, string, string] => [
    `Hammer${String.fromCodePoint(code)}`,
    "good",
    "good",
  ]),
  ["x".repeat(101), "good", "bad"],
  ["🐶".repeat(255), "good", "bad"],
  ["🐶".repeat(256), "bad", "bad"],
  [null, "bad", "bad"],
  [7, "bad", "bad"],
];

for (const { operation, target } of DOCUMENTED) {
  const { id, body } = operation;
  if (!body || !resolved(body).properties?.["name"]) continue;
  Deno.test(`openApiDocument() allows the names that ${id}() accepts, and no others in ASCII`, async () => {
    await using workshop = await Workshop.open();
    await workshop.add({ state: "new" });

    for (const [index, [name, thing, account]] of NAMES.entries()) {
      workshop.address = `192.0.2.${index}`;
      const json = { ...Object(resolved(body).examples?.[0]), name };
      const response = await workshop.call(target, { json });
      const expected = operation.tag?.name === "Things" ? thing : account;
      assertEquals([name, DESCRIPTION.problems(body.json, json).length > 0], [name, expected === "bad"]);
      if (expected !== "good") await assertError(response, 400, "invalid_request", /^The field name must /);
      else assertEquals([name, response.ok, (await response.json()).name], [name, true, name]);
    }
  });
}

Deno.test("openApiDocument() has no pattern for names in responses, because rows may hold others", () => {
  const { Thing, ThingCreation } = DOCUMENT.components.schemas;

  assert(ThingCreation?.properties?.["name"]?.pattern);
  assertEquals(Thing?.properties?.["name"]?.pattern, undefined);
});

/** Values of a format: valid ones, invalid ones, and those that are valid, but that the service refuses. */
const FORMATS: readonly [schema: Schema, valid: string[], invalid: string[], refused: string[]][] = [
  [
    date(),
    ["0000-01-01", "2000-02-29", "2027-12-31", "2028-02-29", "9999-12-31"].map(quoted),
    [
      "1900-02-29",
      "2027-02-29",
      "2027-02-30",
      "2027-04-31",
      "2027-01-00",
      "2027-00-01",
      "2027-13-01",
      "+02027-01-01",
    ]
      .map(quoted),
    [],
  ],
  [
    timestamp(),
    [
      ...["0000-01-01T00:00:00Z", "2028-02-29t23:59:59z", "2027-12-31T00:00:00.123456789+23:59"],
      ...["9999-12-31T23:59:59.9-23:59", "2027-01-15T12:00:00-00:00"],
    ].map(quoted),
    [
      ...["2027-02-29T00:00:00Z", "2027-02-30T00:00:00Z", "2027-04-31T00:00:00Z", "2027-13-01T00:00:00Z"],
      ...[
        "2027-01-15T24:00:00Z",
        "2027-01-15T23:60:00Z",
        "2027-01-15T12:00:60Z",
        "2027-01-15T12:00:00+24:00",
      ],
      ...["2027-01-15T12:00:00+01:60", "2027-01-15T12:00:00", "2027-01-15T12:00Z", "2027-01-15"],
    ].map(quoted),
    ["2016-12-31T23:59:60Z", "2027-01-15 12:00:00Z", "2027-01-15T12:00:00.1234567890Z"].map(quoted),
  ],
  [
    int64(),
    ["9223372036854775807", "-9223372036854775808", "1.0", "1e3"],
    ["1.5", '"1"', "true"],
    ["9223372036854775808", "-9223372036854775809"],
  ],
];

function quoted(text: string): string {
  return JSON.stringify(text);
}

for (const [schema, valid, invalid, refused] of FORMATS) {
  Deno.test(`service accepts ${schema.json.format} at its edges only if the document allows it`, () => {
    const isAccepted = (text: string) => isValid(schema, parseJson(text));
    const isAllowed = (text: string) => DESCRIPTION.problems(schema.json, JSON.parse(text)).length === 0;

    for (const text of valid) assertEquals([text, isAccepted(text), isAllowed(text)], [text, true, true]);
    for (const text of invalid) assertEquals([text, isAccepted(text), isAllowed(text)], [text, false, false]);
    for (const text of refused) assertEquals([text, isAccepted(text), isAllowed(text)], [text, false, true]);
  });
}

Deno.test("service sends a Location that is a URI as the document defines it, whatever the Host", () => {
  const { schema } = DOCUMENT.components.headers.Location ?? {};
  assert(schema);
  for (
    const host of ["a_b.example:65535", "-.", "192.0.2.1", "[::ffff:192.0.2.1]:1", "xn--bcher-kva.example"]
  ) {
    const target = { origin: `http://${host}`, path: "/", query: "" };
    assert(hasValidHost(new Request("http://localhost/", { headers: { host } }), target), host);
    assertEquals(DESCRIPTION.problems(schema, `${target.origin}/v1/things/1`), [], host);
  }
});

Deno.test("openApiDocument() has no format whose edges are not tried", () => {
  const operators = new Description(
    SAMPLES.map(({ operation }) => operation),
    interfaceForOperators(OF_THINGS),
  );
  const text = JSON.stringify([DOCUMENT, operators.document]);
  const formats = new Set([...text.matchAll(/"format":"([^"]+)"/g)].map(([, format]) => format));

  assertEquals([...formats].sort(), [...FORMATS.map(([{ json }]) => json.format ?? ""), "uri"].sort());
});

Deno.test("openApiDocument() marks the bodies that may be omitted", async () => {
  for (const { operation, target, status } of DOCUMENTED) {
    const { required } = DESCRIPTION.describes(operation)?.requestBody ?? {};
    if (required === undefined) continue;
    await using workshop = await Workshop.open();
    await workshop.add({ state: "new" });

    assertEquals([target, (await workshop.call(target)).status], [target, required ? 400 : status]);
  }
});

Deno.test("openApiDocument() lists the success responses of every operation", async () => {
  for (const { operation, target, request, status } of DOCUMENTED) {
    await using workshop = await Workshop.open();
    await workshop.add({ state: "new" });
    await addKnownAccounts(workshop);
    const headers = operation.method === "GET" ? { "if-none-match": "*" } : {};

    const again = await workshop.call(target, { ...request, headers });

    // The harness compares their headers and bodies with the document.
    const statuses = [...new Set([status, again.status])].map(String);
    assertEquals([target, Object.keys(operation.answers)], [target, statuses]);
  }
});

Deno.test("Description.check() rejects a status, header, type or body that is not in the document", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  const good = await service.fetch("GET /v1/things", { key });
  const { headers } = good;
  const without = new Headers(headers);
  without.delete("X-RateLimit-Reset");
  const check = (response: Response, path = "/v1/things") => DESCRIPTION.check("GET", path, response);

  await check(good);
  await check(good, "/v1/things?limit=1");
  await assertRejects(() => check(new Response("[]", { status: 202, headers })), Error, "no such status");
  await assertRejects(
    () => check(new Response("[]", { headers: without })),
    Error,
    "X-RateLimit-Reset is missing",
  );
  await assertRejects(
    () => check(new Response("[]", { headers: { ...Object.fromEntries(headers), "x-secret": "1" } })),
    Error,
    "x-secret is not in the document",
  );
  await assertRejects(
    () =>
      check(new Response("[]", { headers: { ...Object.fromEntries(headers), "content-type": "text/html" } })),
    Error,
    "Content-Type is text/html",
  );
  await assertRejects(() => check(new Response('[{"id":0}]', { headers })), Error, "/0/id must be >= 1");
  await assertRejects(() => check(new Response("[", { headers })), Error, "SyntaxError");
  await assertRejects(() => check(good, "/v1/other"), Error, "no such operation");
  const refusal = await service.fetch("GET /v1/things?limit=0", { key });
  await check(refusal);
  const other = { ...await refusal.clone().json(), code: "thing_not_found" };
  await assertRejects(
    () => check(Response.json(other, refusal)),
    Error,
    "The code thing_not_found is not declared",
  );
});

/** Every example in a part of the document, with its schema. */
function examples(part: unknown): { schema: object; example: unknown }[] {
  if (typeof part !== "object" || part === null) return [];
  const own: { schema?: object; example?: unknown; examples?: unknown } = part;
  const { schema = part, example, examples: several } = own;
  const values = Array.isArray(several)
    ? several
    : Object.values(several ?? {}).map((named) => Object(named).value);
  return [
    ...[...(example === undefined ? [] : [example]), ...values].map((example) => ({ schema, example })),
    ...Object.entries(part).flatMap(([name, value]) => /^examples?$/.test(name) ? [] : examples(value)),
  ];
}
