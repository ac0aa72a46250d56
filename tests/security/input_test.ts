// Input of attackers, to every operation.
import { assertEquals } from "@std/assert";
import { ACCESS } from "../../src/resource/access.ts";
import { BASE_PATH } from "../../src/resource/interface.ts";
import { isDocumented } from "../../src/web/openapi.ts";
import { resolved } from "../../src/web/schema.ts";
import { call, type HarnessRequest, JSON_TYPE } from "../support/client.ts";
import { addKnownAccounts, ALL, credentialFor, type Sample, SAMPLES } from "../support/operations.ts";
import { HAMMER } from "../support/things.ts";
import { Workshop } from "../support/workshop.ts";

const RANDOM = "ThisIsNoKeyThoughItLooksLikeOneOfThose";
const SECRET = `as_test_${RANDOM}`;
const LIVE = `as_live_${RANDOM}`;
const STRICT = { prefer: "handling=strict" };
const DOCUMENTED = SAMPLES.filter(({ operation }) => isDocumented(operation, BASE_PATH));

/** A valid request with this text in every string field without an enum. */
function withText(text: string, { operation: { body }, request }: Sample): Sample["request"] {
  const members = Object.entries(body ? resolved(body).properties ?? {} : {})
    .filter(([, { type, enum: values }]) => type === "string" && !values).map(([name]) => [name, text]);
  return body ? { json: { ...Object(request.json), ...Object.fromEntries(members) } } : request;
}

/** Requests to an operation with a wrong key, or with a secret where none belongs. */
function* leaks(sample: Sample, key: string): Generator<[target: string, request: HarnessRequest]> {
  const { operation, target, request } = sample;
  const query = Object.keys(operation.query).map((name) => `${name}=${SECRET}`);
  if (operation.access === ACCESS.key) {
    for (const wrong of [SECRET, `"${SECRET}`, LIVE]) yield [target, { ...request, key: wrong }];
  }
  if (query.length > 0) yield [`${target}?${query.join("&")}`, { key }];
  if (operation.access !== ACCESS.public) {
    yield [`${target}?${SECRET}=1&x${LIVE}`, { ...request, key, headers: STRICT }];
  }
  if (target.endsWith("/1")) yield [target.replace(/1$/, SECRET), { ...request, key }];
  for (const name of Object.keys(operation.headers)) {
    if (operation.method !== "GET" && name !== "Prefer") {
      yield [target, { ...request, key, headers: { [name]: `"${SECRET}` } }];
    }
  }
  if (!operation.body) return;
  yield [target, { key, ...withText(SECRET.repeat(300), sample), headers: { "content-encoding": SECRET } }];
  yield [target, { key, body: "{", headers: { "content-type": SECRET } }];
  yield [target, { key, body: `{"${SECRET}"`, headers: JSON_TYPE }];
  const members = Object.keys(resolved(operation.body).properties ?? {});
  yield [target, { key, json: Object.fromEntries(members.map((name) => [name, [SECRET]])) }];
  yield [target, { key, json: { ...Object(request.json), [SECRET]: 1, [`x${LIVE}`]: 1 }, headers: STRICT }];
}

Deno.test("service repeats no credential in an error, wherever the request has it", async () => {
  await using workshop = await Workshop.open();
  await workshop.add({ state: "new" });
  const { key } = workshop;

  for (
    const [target, request] of [
      ...DOCUMENTED.flatMap((sample) => [...leaks(sample, key)]),
      [`GET /v1/${SECRET}`, { key }] as const,
      [`GET /Things/${SECRET}/`, { key }] as const,
      [`${SECRET} /v1/things`, { key }] as const,
    ]
  ) {
    const response = await workshop.fetch(target, request);
    const text = JSON.stringify([...response.headers]) + await response.text();
    // The beginning is enough, because messages cut long names.
    assertEquals([target, response.status >= 400, text.includes(RANDOM.slice(0, 10))], [target, true, false]);
  }
});

const NAMES = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty"];
const VALUES = ['{"state":"lost","isAdmin":true}', '"x"', "null", "[]", '{"prototype":{"state":"lost"}}'];

/** The names that every object inherits. */
function inheritedNames(): string[] {
  return [Object, Array, Function].flatMap(({ prototype }) => Object.getOwnPropertyNames(prototype));
}

Deno.test("service ignores or refuses body fields that are named like inherited properties", async () => {
  const before = inheritedNames();
  await using workshop = await Workshop.open(ALL);
  await workshop.add({ state: "new" });
  await addKnownAccounts(workshop);

  for (const { operation, target, request: { json } } of SAMPLES.filter(({ request }) => request.json)) {
    for (const value of VALUES) {
      const fields = NAMES.map((name) => `"${name}":${value}`).join();
      const body = JSON.stringify(json).replace("{", `{${fields},`);
      const credential = credentialFor(operation, workshop.key);
      const response = await workshop.fetch(target, { ...credential, headers: JSON_TYPE, body });
      const text = await response.text();
      const isRefused = response.status === 400 && text.includes(`The field ${NAMES[0]} is unknown`);
      const outcome = [response.ok || isRefused, text.includes("lost"), text.includes("isAdmin")];
      assertEquals([target, body, ...outcome], [target, body, true, false, false]);
      assertEquals(isRefused, operation.isExtension === true || operation.access === ACCESS.operator);
    }
  }

  assertEquals(inheritedNames(), before);
  assertEquals(Reflect.get({}, "state"), undefined);
});

Deno.test("service treats names of inherited properties like any others in URLs, headers, keys and values", async () => {
  await using workshop = await Workshop.open();

  for (const name of NAMES) {
    const statuses = [];
    for (
      const path of [
        `/v1/things/${name}`,
        `/v1/${name}`,
        `/${name}`,
        `/v1/things?state=${name}`,
        `/v1/things?${name}=1`,
      ]
    ) {
      statuses.push((await workshop.call(`GET ${path}`)).status);
    }
    statuses.push((await workshop.fetch("GET /v1/things", { key: name })).status);
    statuses.push((await workshop.fetch(`${name} /v1/things`, { key: workshop.key })).status);
    assertEquals(statuses, [404, 404, 404, 400, 200, 401, 405], name);
    const headers = { "idempotency-key": name };
    const signUp = await call(workshop, undefined, "POST /v1/accounts", { json: { name } });
    assertEquals([signUp.status, Object(signUp.json).name], [201, name]);
    for (const replayed of [null, "true"]) {
      const response = await workshop.call("POST /v1/things", { json: HAMMER, headers });
      assertEquals([response.status, response.headers.get("idempotency-replayed")], [201, replayed]);
    }
  }
});

Deno.test("service reads, rotates and closes only the account that the key belongs to", async () => {
  await using workshop = await Workshop.open();
  const { account: { id }, apiKey } = await workshop.createAccount("free");
  for (let count = 0; count < 100; count++) await call(workshop, workshop.key);
  const { json: other } = await call(workshop, workshop.key, "GET /v1/account");
  const json = { id: Object(other).id, accountId: Object(other).id };
  const targets = ["GET /v1/account", "GET /v1/account/usage", "POST /v1/account/key", "DELETE /v1/account"];

  for (const target of targets) {
    assertEquals((await call(workshop, apiKey, `${target}?${new URLSearchParams(json)}`)).status, 400);
  }
  assertEquals((await call(workshop, apiKey, "POST /v1/account/key", { json })).status, 400);
  const shown = await call(workshop, apiKey, "GET /v1/account");
  const days = await call(workshop, apiKey, "GET /v1/account/usage?days=1");
  const rotated = await call(workshop, apiKey, "POST /v1/account/key");
  const key = Object(rotated.json).apiKey;
  const closed = await call(workshop, key, "DELETE /v1/account", { json });

  assertEquals([Object(shown.json).id, Object(days.json)[0].admitted, closed.status], [id, 7, 204]);
  assertEquals((await call(workshop, workshop.key)).status, 200);
  assertEquals((await call(workshop, key)).code, "invalid_api_key");
});
