import { assert, assertEquals, assertRejects } from "@std/assert";
import { ERROR_CODES, type ErrorCode, STATUS } from "../../src/http/error.ts";
import { PET_PARAMETERS } from "../../src/pets/pet_query.ts";
import { ERROR_HELP } from "../../src/portal/error_help.ts";
import { errorsOf, OPERATIONS } from "../../src/portal/openapi/document.ts";
import { inputsOf } from "../../src/portal/openapi/inputs.ts";
import type { Operation } from "../../src/portal/openapi/operation.ts";
import type { Schema } from "../../src/portal/openapi/schema.ts";
import { SCHEMAS } from "../../src/portal/openapi/schemas.ts";
import { Harness } from "../harness.ts";
import { assertError } from "../http/assertions.ts";
import { PROVOCATIONS, provoke } from "./provocations.ts";
import { BESIDE_THE_API, checkResponse, DESCRIBED, DOCUMENT, schemaProblems } from "./response_check.ts";

/** What the service answers when it fails itself, or after ten seconds: not provoked here. */
const NOT_PROVOKED: readonly ErrorCode[] = ["internal_error", "request_timeout"];
/** Errors of paths and methods that are in no document, and those that operators meet. */
const OF_NO_OPERATION: readonly ErrorCode[] = ["not_found", "method_not_allowed", "invalid_operator_token"];

Deno.test("openApiDocument() describes every route of the API, and no other", async () => {
  await using service = await Harness.open({
    operatorToken: "x".repeat(32),
    securityContact: "mailto:a@b.c",
  });
  const routes = service.app.routes.filter(({ path }) => !BESIDE_THE_API.includes(path));

  const answered = routes.map(({ method, path, access }) => [
    `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`,
    access === "key" ? "with a key" : "without",
  ]);
  const described = DESCRIBED.map(({ method, path, operation }) => [
    `${method} ${path}`,
    operation.security === undefined ? "with a key" : "without",
  ]);

  assertEquals(answered.sort(), described.sort());
  assertEquals(
    BESIDE_THE_API.filter((path) => !service.app.routes.some((route) => route.path === path)),
    [],
  );
});

Deno.test("openApiDocument() has every path below its one server, as generators of clients expect", () => {
  const { servers, paths } = DOCUMENT;

  assertEquals(servers, [{ url: "/v1" }]);
  const members = Object.values(paths).flatMap((item) => [item, ...Object.values(item)]).flatMap(Object.keys);
  assert(members.includes("operationId"));
  assert(!members.includes("servers"));
});

for (const { id, body, ...operation } of OPERATIONS) {
  Deno.test(`openApiDocument() gives ${id} the errors that it answers with`, async () => {
    const described = DESCRIBED.find(({ operation }) => operation.operationId === id);
    assert(described);
    const example = body && SCHEMAS[body]?.examples?.[0];

    for (const code of errorsOf({ id, ...operation, ...(body ? { body } : {}) })) {
      if (NOT_PROVOKED.includes(code)) continue;
      const provocation = PROVOCATIONS[code];
      assert(provocation, `${code} cannot be provoked`);
      const response = await provoke(provocation, described, example);
      const problem = await response.clone().json();
      assertEquals([problem.code, response.status], [code, STATUS[code]]);
      await checkResponse(described.method, described.path.replace("{petId}", "1"), response);
    }
  });
}

Deno.test("openApiDocument() has every error code that a client can meet", () => {
  const described = new Set([...OPERATIONS.flatMap(errorsOf), ...OF_NO_OPERATION]);

  assertEquals([...described].sort(), [...ERROR_CODES].sort());
  assertEquals(Object.keys(ERROR_HELP).sort(), [...ERROR_CODES].sort());
});

Deno.test("openApiDocument() has examples that are as their schemas want them", () => {
  const seen = examples(DOCUMENT);

  assert(seen.length > 30);
  for (const { schema, example } of seen) {
    assertEquals([example, schemaProblems(schema, example)], [example, []]);
  }
});

/** Values at the ends of what a schema allows, and just beyond them. */
function edgesOf({ type, enum: values, minimum, maximum, minLength, maxLength }: Schema): {
  good: readonly unknown[];
  bad: readonly unknown[];
} {
  if (values) return { good: values, bad: ["x"] };
  assert(type === "string" || type === "integer", `No edges are known of ${type}`);
  const [low, high] = type === "string" ? [minLength, maxLength] : [minimum, maximum];
  if (low === undefined || high === undefined) return { good: [], bad: [] };
  const valueOf = (edge: number) => type === "string" ? "x".repeat(edge) : edge;
  return { good: [low, high].map(valueOf), bad: [low - 1, high + 1].map(valueOf) };
}

Deno.test("openApiDocument() has the parameters of queries and the members of bodies as they are read", async () => {
  await using service = await Harness.open();
  const ask = async ({ method, path, body }: Operation, query: string, member: object) => {
    const { apiKey: key } = await service.createAccount();
    const made = await service.fetch("POST /v1/pets", { key, json: { name: "Rex", categoryId: 1 } });
    const { id } = await made.json();
    const target = `${method} ${path.replace("{petId}", id)}${query}`;
    const example = body && SCHEMAS[body]?.examples?.[0];
    return await service.fetch(target, { key, ...(body ? { json: { ...Object(example), ...member } } : {}) });
  };
  const found: string[] = [];

  for (const operation of OPERATIONS) {
    for (const { name, place, isRequired, schema } of inputsOf(operation)) {
      const { good, bad } = edgesOf(schema);
      const statusOf = async (value: unknown) => {
        const [query, member] = place === "query" ? [`?${name}=${value}`, {}] : ["", { [name]: value }];
        const { ok, status } = await ask(operation, query, member);
        return ok ? "good" : status === 400 ? "bad" : `${status}`;
      };
      if (place === "query") {
        const twice = await ask(operation, `?${name}=1&${name}=1`, {});
        await assertError(twice, 400, "invalid_request", RegExp(`^${name} must be given at most once`));
      }
      if (place === "body") {
        const outcomes = [await statusOf(undefined), await statusOf(null)];
        assertEquals(outcomes, [isRequired ? "bad" : "good", "bad"], `${operation.id} ${name}`);
      }
      if (!/query|body/.test(place) || good.length === 0) continue;
      found.push(`${operation.id} ${name}`);
      assertEquals(await Promise.all(good.map(statusOf)), good.map(() => "good"), found.at(-1));
      assertEquals(await Promise.all(bad.map(statusOf)), bad.map(() => "bad"), found.at(-1));
    }
  }

  const listPets = OPERATIONS.find(({ id }) => id === "listPets");
  const inQuery = listPets?.parameters?.filter(({ in: place }) => place === "query");
  assertEquals(inQuery?.map(({ name }) => name), PET_PARAMETERS);
  assertEquals(found, [
    "listPets limit",
    "listPets status",
    "createPet name",
    "createPet status",
    "updatePet name",
    "updatePet status",
    "createMessage message",
    "createAccount name",
    "rotateKey graceSeconds",
    "getUsage days",
  ]);
});

/** Names, with what is said of those that no animal may have, or no account. */
const NAMES: readonly [name: unknown, animal: string, account: string][] = [
  ...[
    "Rex",
    "  Rex ",
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
  ...["", " ", "\u00a0\u3000\u2003", "\ufeff", "\u2028\u2029", " ".repeat(100)]
    .concat(["a\u0000", "\u001b[2J", "a\tb", "a\n", "\r", "\u007fa", "\u0080", "\u0085a", "a\u009f"])
    .map((name): [string, string, string] => [name, "bad", "bad"]),
  ...[0x61c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069]
    .map((code): [string, string, string] => [`Rex${String.fromCodePoint(code)}`, "good", "bad"]),
  ...[0x61b, 0x200d, 0x2010, 0x202f, 0x2065, 0x206a, 0xa0, 0x7e].map((code): [string, string, string] => [
    `Rex${String.fromCodePoint(code)}`,
    "good",
    "good",
  ]),
  ["x".repeat(101), "good", "bad"],
  ["🐶".repeat(255), "good", "bad"],
  ["🐶".repeat(256), "bad", "bad"],
  [null, "bad", "bad"],
  [7, "bad", "bad"],
];

for (
  const [operation, schema, target] of [
    ["createPet", "NewPet", "POST /v1/pets"],
    ["updatePet", "PetPatch", "PATCH /v1/pets/1"],
    ["createAccount", "NewAccount", "POST /v1/accounts"],
  ] as const
) {
  Deno.test(`openApiDocument() allows the names that ${operation}() takes, and no others`, async () => {
    await using service = await Harness.open();
    const { apiKey: key } = await service.createAccount();
    await service.fetch("POST /v1/pets", { key, json: { name: "Rex", categoryId: 1 } });

    for (const [index, [name, animal, account]] of NAMES.entries()) {
      service.address = `192.0.2.${index}`;
      const json = { name, categoryId: 1 };
      const response = await service.fetch(target, { key, json });
      const problems = schemaProblems({ $ref: `#/components/schemas/${schema}` }, json);
      const expected = operation === "createAccount" ? account : animal;
      assertEquals([name, problems.length === 0 ? "good" : "bad"], [name, expected]);
      if (expected === "bad") await assertError(response, 400, "invalid_request", /^name must /);
      else assertEquals([name, response.ok, (await response.json()).name], [name, true, name]);
    }
  });
}

Deno.test("openApiDocument() has no pattern for names in answers: rows may hold others", () => {
  const { Pet, NewPet } = SCHEMAS;

  assert(NewPet?.properties?.["name"]?.pattern);
  assertEquals(Pet?.properties?.["name"]?.pattern, undefined);
});

Deno.test("openApiDocument() tells which bodies may be left out", async () => {
  await using service = await Harness.open();
  const optional: string[] = [];

  for (const { method, path, operation: { operationId, requestBody } } of DESCRIBED) {
    if (!requestBody) continue;
    const { apiKey: key } = await service.createAccount();
    const { status } = await service.fetch(`${method} ${path.replace("{petId}", "1")}`, { key });
    assertEquals([operationId, status], [operationId, requestBody.required ? 400 : 201]);
    if (!requestBody.required) optional.push(operationId);
  }

  assertEquals(optional, ["rotateKey"]);
});

Deno.test("openApiDocument() gives every operation the answers that it succeeds with", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  const replies = new Set<string>();
  const check = async (target: string, request: Parameters<Harness["fetch"]>[1] = {}) => {
    const [method = "", path = ""] = target.split(" ");
    const response = await service.fetch(target, { key, ...request });
    await checkResponse(method, path, response);
    replies.add(`${target.split("?")[0]} ${response.status}`);
    return response;
  };
  const pet = { name: "Rex", categoryId: 1 };

  await check("POST /v1/pets", { json: pet, headers: { "idempotency-key": "1" } });
  await check("POST /v1/pets", { json: pet, headers: { "idempotency-key": "1" } });
  await check("POST /v1/pets", { json: pet });
  const list = await check("GET /v1/pets?limit=1");
  await check("HEAD /v1/pets?limit=1");
  await check("GET /v1/pets?limit=1", { headers: { "if-none-match": list.headers.get("etag") ?? "" } });
  const one = await check("GET /v1/pets/1");
  await check("GET /v1/pets/1", { headers: { "if-none-match": one.headers.get("etag") ?? "" } });
  await check("PATCH /v1/pets/1", { json: { status: "sold" } });
  await check("DELETE /v1/pets/1");
  await check("POST /v1/messages", { json: { message: "Hello" } });
  await check("POST /v1/accounts", { json: { name: "me" } });
  await check("GET /v1/account");
  await check("GET /v1/account/usage");
  const rotated = await check("POST /v1/account/key", { json: { graceSeconds: 60 } });
  assert(rotated.ok);
  const document = await check("GET /v1/openapi.json");
  const known = { "if-none-match": document.headers.get("etag") ?? "" };
  await check("GET /v1/openapi.json", { headers: known });
  await check("OPTIONS /v1/pets");
  await check("GET /v1/nothing");
  await check("PUT /v1/pets");
  await check("DELETE /v1/account");

  const successes = OPERATIONS.flatMap(({ method, path, successes }) =>
    successes.map(({ status }) => `${method} ${path.replace("{petId}", "1")} ${status}`)
  );
  assertEquals(successes.filter((success) => !replies.has(success)), []);
});

Deno.test("checkResponse() notices a status, a header, a type and a body that the document does not have", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  const good = await service.fetch("GET /v1/pets", { key });
  const { headers } = good;
  const without = new Headers(headers);
  without.delete("X-RateLimit-Reset");
  const check = (response: Response, path = "/v1/pets") => checkResponse("GET", path, response);

  await check(good);
  await check(good, "/v1/pets?limit=1");
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
  await assertRejects(() => check(good, "/v1/other"), Error, "not in the document");
  const refusal = await service.fetch("GET /v1/pets?limit=0", { key });
  await check(refusal);
  const other = { ...await refusal.clone().json(), code: "pet_not_found" };
  await assertRejects(() => check(Response.json(other, refusal)), Error, "The code pet_not_found is not");
});

/** Every example below a part of the document, with the schema that it stands beside. */
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
