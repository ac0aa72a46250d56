// What holds for every operation, and for requests that match none.
import { assertEquals, assertMatch } from "@std/assert";
import { ACCESS, BASE_PATH, needsToken } from "../../src/service/mod.ts";
import { ERRORS } from "../../src/web/error.ts";
import { errorsOf, isDocumented } from "../../src/web/openapi.ts";
import type { Access } from "../../src/web/operation.ts";
import { OWN } from "../catalogue/operations.ts";
import { assertError } from "../support/assertions.ts";
import { call, type HarnessRequest, JSON_TYPE } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import {
  addKnownAccounts,
  ALL,
  credentialFor,
  GOOD,
  GOOD_FOR_OPERATORS,
  type Sample,
  SAMPLES,
} from "../support/operations.ts";
import { HAMMER } from "../support/things.ts";
import { NOON } from "../support/time.ts";
import { provoke } from "./provocations.ts";

Deno.test("SAMPLES has a valid request for every operation of the service", () => {
  const tableOf = (access: Access) => access === ACCESS.operator ? GOOD_FOR_OPERATORS : GOOD;
  const unknown = SAMPLES.filter(({ operation: { id, access } }) => !(id in tableOf(access)));

  assertEquals(
    unknown.map(({ operation }) => operation.id),
    [],
    "if not, add it to tests/support/operations.ts or, if it is yours, tests/catalogue/operations.ts",
  );
});

/** A service with every operation, and an account that has sent one request: it has added a thing. */
async function open(): Promise<{ service: Harness; id: string; key: string }> {
  const service = await Harness.open(ALL);
  const { account: { id }, apiKey: key } = await service.createAccount();
  await service.fetch("POST /v1/things", { key, json: HAMMER });
  await addKnownAccounts(service, id);
  return { service, id, key };
}

/** A request, its status with a credential and without, who may send it, and the tables that it changes. */
type Case = readonly [
  target: string,
  request: HarnessRequest,
  status: number,
  without: number,
  access: Access,
  changes?: readonly string[],
];

const CASES: readonly Case[] = [
  ...SAMPLES.map(({ operation: { access }, target, request, status, changes }): Case => {
    return [target, request, status, access.hasCredential ? 401 : status, access, changes];
  }),
  ["HEAD /v1/things", {}, 200, 401, ACCESS.key],
  ["GET /v1/things", { headers: { "if-none-match": "*" } }, 304, 401, ACCESS.key],
  ["GET /v1/things?limit=0", {}, 400, 401, ACCESS.key],
  ["GET /v1/things/999", {}, 404, 401, ACCESS.key],
  ["POST /v1/things", { json: {} }, 400, 401, ACCESS.key],
  ["POST /v1/things", { body: "x".repeat(70_000), headers: JSON_TYPE }, 413, 401, ACCESS.key],
  ["PATCH /v1/things/1", { json: {}, headers: { "if-match": '"x"' } }, 412, 401, ACCESS.key],
  ["GET /health", { headers: { host: "a/b" } }, 400, 400, ACCESS.key],
  ["GET /v1/nowhere", {}, 404, 404, ACCESS.key],
  ["GET /v1", {}, 404, 404, ACCESS.key],
  ["GET /v1/", {}, 404, 404, ACCESS.key],
  ["GET /v1/%zz", {}, 404, 404, ACCESS.key],
  ["PUT /v1/things", {}, 405, 405, ACCESS.key],
  ["PROPFIND /v1/account", {}, 405, 405, ACCESS.key],
  ["GET /v1/accounts", {}, 405, 405, ACCESS.key],
  ["POST /v1/accounts", { json: {} }, 400, 400, ACCESS.address],
  ["OPTIONS /v1/things", {}, 204, 204, ACCESS.public],
  ["OPTIONS /v1/accounts", {}, 204, 204, ACCESS.public],
  ["OPTIONS /v1/nowhere", {}, 404, 404, ACCESS.public],
  ["GET /nowhere", {}, 404, 404, ACCESS.public],
  ["GET /v10", {}, 404, 404, ACCESS.public],
  ["PUT /health", {}, 405, 405, ACCESS.public],
];

/** Tables with counts of requests, with markers of commits, and with the changes in other tables. */
const COUNTING = ["commits", "usage", "usage_days", "changes"];

/** The rows of each other table. */
async function tablesOf({ kv }: Harness): Promise<Map<string, string>> {
  const rows = await Array.fromAsync(kv.list({ prefix: [] }));
  const byTable = Map.groupBy(rows, ({ key }) => String(key[0]));
  const tables = [...byTable].filter(([table]) => !COUNTING.includes(table));
  return new Map(tables.map(([table, rows]) => [table, Deno.inspect(rows)]));
}

/** Asserts that a response describes these limits, or none if its path has none. */
function assertLimits(target: string, { headers, status }: Response, limit: number, remaining: number): void {
  // After a sign-up, the headers describe another limit.
  if (target === "POST /v1/accounts" && status === 201) return;
  // If the Host is invalid, nobody knows the path.
  const isLimited = / \/v1(\/|$)/.test(target) || status === 400;
  const values = ["limit", "remaining", "reset"].map((name) => headers.get(`x-ratelimit-${name}`));
  const expected = [`${limit}`, `${remaining}`, `${NOON / 1_000 + 60}`];
  assertEquals(values, isLimited ? expected : [null, null, null]);
  assertEquals(headers.has("ratelimit"), isLimited);
}

/**
 * Asserts that the response has the headers of all, and those for pages of other origins, or no such headers. It varies
 * by origin only if a shared cache may keep it.
 */
function assertCommonHeaders(target: string, { headers }: Response, isOpen: boolean): void {
  assertEquals(headers.get("x-content-type-options"), "nosniff");
  const isShared = target.startsWith("GET ") && !/private|no-store/.test(headers.get("cache-control") ?? "");
  assertEquals(/^Origin\b/.test(headers.get("vary") ?? ""), isShared);
  assertMatch(headers.get("x-request-id") ?? "", /^[\x21-\x7e]+$/);
  const cors = [...headers.keys()].filter((name) => name.startsWith("access-control-"));
  assertEquals(cors, isOpen ? ["access-control-allow-origin", "access-control-expose-headers"] : []);
  assertEquals(headers.get("access-control-allow-origin"), isOpen ? "*" : null);
}

/** Remaining requests of the address, according to another request without a key, which counts. */
async function leftOfAddress(service: Harness): Promise<number> {
  return (await call(service)).remaining;
}

for (const [target, request, status, without, access, changes = []] of CASES) {
  const payer = access === ACCESS.key || access === ACCESS.address ? access.name : "nobody";
  const what = `returns ${status} to ${target}, charges it to ${payer}, and changes: ${
    changes.join() || "-"
  }`;
  Deno.test(`service ${what}; without credentials it returns ${without}`, async () => {
    const { service: opened, id, key } = await open();
    await using service = opened;
    const before = await tablesOf(service);
    const credential = needsToken(access) ? credentialFor({ access }, key) : { key };
    const headers = new Headers(request.headers);
    headers.set("origin", "https://workshop.example");

    const response = await service.fetch(target, { ...request, ...credential, headers });
    await response.text(); // A command ends with its response.

    assertEquals(response.status, status);
    const [limit, left] = payer === "address" ? [60, 59] : [1_000, payer === "key" ? 998 : 999];
    assertLimits(target, response, limit, left);
    assertCommonHeaders(target, response, !needsToken(access) && !/ \/operator(?:\/|$)/.test(target));
    const after = await tablesOf(service);
    const tables = [...new Set([...before.keys(), ...after.keys()])];
    assertEquals(tables.filter((table) => before.get(table) !== after.get(table)).sort(), changes);
    await service.app.close();
    const usage = await service.accounts.usage(id);
    assertEquals([usage.used, usage.usedToday], payer === "key" ? [2, 2] : [1, 1]);
    const leftThen = await leftOfAddress(service);
    assertEquals(leftThen, payer === "address" ? 58 : 59);

    const anonymous = await service.fetch(target, request);
    await anonymous.body?.cancel();

    assertEquals(anonymous.status, without);
    const charge = access === ACCESS.public ? 0 : 1;
    assertLimits(target, anonymous, 60, leftThen - charge);
    assertCommonHeaders(target, anonymous, false);
    assertEquals(await leftOfAddress(service), leftThen - charge - 1);
  });
}

/** Headers that differ from one request to the next. */
const VARYING = ["ratelimit", "x-ratelimit-remaining"];

Deno.test("service returns the status and headers of GET to HEAD, and 304 from the operations that document it", async () => {
  const { service: opened, key } = await open();
  await using service = opened;
  const misses = ["GET /v1/things/2", "GET /nothing"].map((target) => ({ operation: undefined, target }));
  const reads = SAMPLES.filter(({ operation: { method } }) => method === "GET");

  for (const { operation, target } of [...reads, ...misses]) {
    const credential = credentialFor(operation ?? { access: ACCESS.key }, key);
    const request = { ...credential, headers: { "x-request-id": "r1" } };
    const get = await service.fetch(target, request);
    const head = await service.fetch(target.replace("GET", "HEAD"), request);
    const again = await service.fetch(target, { ...credential, headers: { "if-none-match": "*" } });

    const lasting = ({ headers }: Response) => [...headers].filter(([name]) => !VARYING.includes(name));
    assertEquals([target, head.status, lasting(head)], [target, get.status, lasting(get)]);
    if (!operation || !isDocumented(operation, BASE_PATH)) continue;
    assertEquals([target, again.status], [target, operation.answers[304] ? 304 : 200]);
  }
});

Deno.test("operations document the status of their success, and no other but 304", () => {
  for (const { operation: { id, answers }, status } of SAMPLES) {
    const statuses = Object.keys(answers).filter((status) => status !== "304");
    assertEquals([id, statuses], [id, statuses.length === 0 ? [] : [`${status}`]]);
  }
});

/** Codes of failures of the service or its store, and of a body that takes ten seconds. They are not provoked here. */
const NOT_PROVOKED: readonly string[] = ["internal_error", "store_unavailable", "request_timeout"];
/** Errors that follow from the access and the body of operations, as they are provoked: once for all that have both. */
const PROVOKED = new Set<string>();

for (const sample of SAMPLES) {
  const { id, access, body, errors, isForMonitoring } = sample.operation;
  const kinds = errorsOf(sample.operation).filter((kind) => {
    const name = `${access.name} ${body !== undefined} ${kind.code}`;
    // A service that stops still answers monitoring.
    if (NOT_PROVOKED.includes(kind.code) || (isForMonitoring && kind.code === "service_stopping")) {
      return false;
    }
    if (PROVOKED.has(name) && !errors.includes(kind)) return false;
    PROVOKED.add(name);
    return true;
  });
  if (kinds.length === 0) continue;
  Deno.test(`${id}() returns the errors that it declares: ${kinds.map(({ code }) => code).join()}`, async () => {
    for (const { code, status, texts } of kinds) {
      // An invalid request may have no field.
      const { field: _, ...others } = texts ?? {};
      await assertError(await provoke(code, sample), status, code, undefined, Object.keys(others));
    }
  });
}

Deno.test("operations declare every error of ERRORS except those of no operation, and no code twice", () => {
  const declared = new Set(SAMPLES.flatMap(({ operation }) => errorsOf(operation)));

  assertEquals(Object.values(ERRORS).filter((kind) => !declared.has(kind)), [ERRORS.method_not_allowed]);
  assertEquals(new Set([...declared].map(({ code }) => code)).size, declared.size);
});

Deno.test("of the operations for clients, those that 1.0.0 had, and no others but yours, prefer what a client does", () => {
  const shipped = SAMPLES.filter(({ operation: { id, access } }) =>
    (access === ACCESS.key || access === ACCESS.address) && !(id in OWN)
  );
  for (const { operation: { id, headers, isExtension = false } } of shipped) {
    assertEquals([id, "Prefer" in headers], [id, !isExtension]);
  }
});

/** Refused or ignored: an unknown query parameter, and an unknown field if the request has a body. */
function mistyped({ target, request }: Sample): [target: string, request: Sample["request"]] {
  const json = request.json === undefined ? {} : { json: { ...Object(request.json), staet: 1 } };
  return [`${target}?staet=1`, { ...request, ...json }];
}

for (const sample of SAMPLES) {
  const { operation, status } = sample;
  const hasPreference = "Prefer" in operation.headers;
  const isStrict = operation.access.isStrict && !hasPreference;
  const title = hasPreference
    ? "ignores unknown names, except with handling=strict"
    : "ignores unknown names";
  Deno.test(`${operation.id}() ${isStrict ? "refuses unknown names" : title}`, async () => {
    const { service: opened, key } = await open();
    await using service = opened;
    const [target, request] = mistyped(sample);
    const credential = credentialFor(operation, key);
    const strict = { ...credential, headers: { prefer: "handling=strict" } };

    const usual = await service.fetch(target, { ...request, ...credential });
    const refused = await service.fetch(target, { ...request, ...strict });
    const accepted = await service.fetch(sample.target, { ...sample.request, ...strict });

    const applied = [usual, refused, accepted].map(({ headers }) => headers.get("preference-applied"));
    assertEquals(applied, [null, ...(hasPreference ? ["handling=strict", "handling=strict"] : [null, null])]);
    const statuses = [isStrict ? 400 : status, isStrict || hasPreference ? 400 : status, status];
    assertEquals([usual, refused, accepted].map(({ status }) => status), statuses);
    for (const response of [usual, refused].filter(({ status }) => status === 400)) {
      const { message } = await response.clone().json();
      await assertError(
        response,
        400,
        "invalid_request",
        /^The query parameter staet is unknown(; did you|\.)/,
      );
      assertEquals(message.includes("The field staet is unknown"), request.json !== undefined);
    }
    for (const response of [usual, refused, accepted]) if (!response.bodyUsed) await response.text();
  });
}
