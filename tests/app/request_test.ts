// How the service reads a request: its host, path, headers and names; and what it says of the faults in it.
import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { createArrivals, createSuggester } from "../../src/app/arrival.ts";
import { createRequestIds, hasValidHost, hostFault, targetOf } from "../../src/app/target.ts";
import { needsToken, SERVICE_HEADERS } from "../../src/service/mod.ts";
import { type AllowedOrigins, createCors } from "../../src/web/cors.ts";
import { assertError, assertLimitHeaders } from "../support/assertions.ts";
import { type HarnessRequest, JSON_TYPE } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { Description } from "../support/openapi.ts";
import { ALL, SAMPLES } from "../support/operations.ts";
import { HAMMER } from "../support/things.ts";
import { Workshop } from "../support/workshop.ts";

const OPERATIONS = SAMPLES.map(({ operation }) => operation);
const STRICT = { prefer: "handling=strict" };
const APPLIED = "preference-applied";

function request(headers: Record<string, string> = {}): Request {
  return new Request("http://localhost/", { headers });
}

Deno.test.each([
  ["http://localhost:8000", "/", "/", ""],
  ["https://things.example", "/v1/things", "/v1/things", ""],
  ["http://[::1]:8000", "/v1/things?limit=1", "/v1/things", "?limit=1"],
  ["http://localhost", "", "/", ""],
  ["http://localhost", "/v1/things?", "/v1/things", "?"],
  ["http://localhost", "/a?b?c=https://d/e", "/a", "?b?c=https://d/e"],
  ["http://localhost", "//a%2Fb/%zz", "//a%2Fb/%zz", ""],
])("targetOf() splits %s%s", (origin, target, path, query) => {
  assertEquals(targetOf(origin + target), { origin, path, query });
});

const LONGEST = `${"a".repeat(250)}:8000`;
const GOOD = "localhost things.example:8443 my_pets-1.example. 192.0.2.1:80 [2001:db8::1]:8000 [::1]".split(
  " ",
);
const BAD = 'a/v1/health a?b a#b "><script> user@things.example a:b a:123456 :80 ::1 [::1 é.example'.split(
  " ",
);

Deno.test("hasValidHost() accepts only a valid host, with or without a port, or none", () => {
  const isValid = (host: string) => hasValidHost(request({ host }), targetOf(request({ host }).url));

  for (const host of [...GOOD, "", LONGEST]) assertEquals([host, isValid(host)], [host, true]);
  for (const host of [...BAD, "a b", `a${LONGEST}`]) assertEquals([host, isValid(host)], [host, false]);
  assertMatch(hostFault(request({ host: "a/b" })), /^The Host header must be a host name/);
  assertEquals(hostFault(request({ host: "a.example, b.example:80" })), "The Host was sent twice.");
});

// With an absolute-form target, or over HTTP/2, the authority of the URL may differ from Host.
Deno.test.each([
  [`http://${LONGEST}/`, true],
  [`http://a${LONGEST}/`, false],
  ["http://things.example;a='b'/", false],
])("hasValidHost() checks the authority of %s, with and without a Host", (url, expected) => {
  for (const headers of [{}, { host: "" }, { host: "localhost" }]) {
    assertEquals(hasValidHost(new Request(url, { headers }), targetOf(url)), expected);
  }
});

Deno.test("service checks Host and method of each request, even if the path was requested before", async () => {
  await using workshop = await Workshop.open();
  const statuses: number[] = [];

  for (const host of ["localhost:8000", "a/b", "", "a/b", "localhost:8000"]) {
    for (const method of ["GET", "PUT", "GET"]) {
      statuses.push((await workshop.call(`${method} /v1/things`, { headers: { host } })).status);
    }
  }

  const [good, bad] = [[200, 405, 200], [400, 400, 400]];
  assertEquals(statuses, [good, bad, good, bad, good].flat());
});

Deno.test.each([
  ["http://things.example", undefined, "http://things.example"],
  ["https://things.example", undefined, "https://things.example"],
  // A vsock, which only a front end can reach.
  ["http+vsock://things.example", undefined, "https://things.example"],
  // Schemes that a client may send over HTTP/2.
  ["javascript://things.example", undefined, "https://things.example"],
  ["httpx://things.example", undefined, "https://things.example"],
  ["http://things.example", "https://things.example/workshop", "https://things.example/workshop"],
])("URLs in responses to %s begin with PUBLIC_URL (%s) or http or https: %s", (origin, publicUrl, base) => {
  const arrive = createArrivals({
    operations: [],
    publicUrl,
    clock: Date.now,
    clientAddress: () => "",
  });
  const headers = {
    ...{ "x-forwarded-host": "evil.example", "x-forwarded-proto": "https" },
    forwarded: "host=evil.example;proto=https",
  };
  const remoteAddr = { transport: "tcp", hostname: "192.0.2.1", port: 1 } as const;

  assertEquals(arrive(new Request(`${origin}/v1/things`, { headers }), { remoteAddr }).base, base);
});

const GENERATED = /^[\da-f]{8}-[\da-f]{4}-\d+$/;

Deno.test("requestId() returns the client's ID of up to 64 visible characters, or generates another each time", () => {
  const requestId = createRequestIds();
  for (const id of ["7", "trace-1.2:3/4", "!~", "x".repeat(64)]) {
    assertEquals(requestId(request({ "x-request-id": id })), id);
  }
  for (const id of ["", "two words", "tab\tbed", "caf\u00e9", "a, b", "x".repeat(65)]) {
    assertMatch(requestId(request({ "x-request-id": id })), GENERATED);
  }
  const first = requestId(request());
  assertMatch(first, GENERATED);
  assertNotEquals(requestId(request()), first);
  // The first of another process.
  assertNotEquals(createRequestIds()(request()), createRequestIds()(request()));
});

Deno.test("suggest() returns the path that a client may have meant, whatever its case, slashes and base", () => {
  const suggest = createSuggester(OPERATIONS);
  const ofClients = OPERATIONS.filter(({ access, path }) =>
    !needsToken(access) && path !== "/" && !path.startsWith("/operator")
  );

  for (
    const [meant, ...paths] of [
      ...ofClients.map(({ path }) => [path, `${path.toUpperCase()}/`]),
      ["/v1/things", "/things", "/v1/things/", "/v1/Things", "/V1/THINGS//", "//v1///things", "/v1/Th%69ngs"],
      ["/v1/things/{thingId}", "/things/7", "/v1//things/7/"],
      [
        undefined,
        "/v1/thing",
        "/v1/things/7/owner",
        "/v2/things",
        "/things/%zz",
        "/v1/",
        "/v1/metrics",
        "/OPERATOR/",
      ],
      [undefined, `/${"/".repeat(50_000)}x`],
    ]
  ) {
    for (const path of paths) assertEquals([path, suggest(path ?? "")], [path, meant]);
  }
});

Deno.test("service suggests the path that a client may have meant, or else names the document", async () => {
  await using service = await Harness.open(ALL);

  for (
    const [path, hint] of [
      ["/Things/?limit=7", "Did you mean /v1/things?"],
      ["/v1/metrics", "See /v1/openapi.json."],
      ["/operator/v1/accounts/", "See /operator/v1/openapi.json."],
    ] as const
  ) {
    const response = await service.fetch(`GET ${path}`);
    const { message } = await response.clone().json();
    await assertError(response, 404, "not_found");
    assertEquals(message, `There is nothing at this path. ${hint}`);
    const document = path.startsWith("/operator") ? "/operator/v1/openapi.json" : "/v1/openapi.json";
    assertEquals(response.headers.get("link"), `<${document}>; rel="service-desc"`);
  }
  assertLimitHeaders(await service.fetch("GET /%761/th%69ngs"));
});

Deno.test("service returns 405 to other methods and 204 to OPTIONS, both with Allow", async () => {
  await using workshop = await Workshop.open();

  for (
    const [method, path, allow] of [
      ["PUT", "/v1/things", "GET, HEAD, OPTIONS, POST"],
      ["POST", "/v1/things/1", "DELETE, GET, HEAD, OPTIONS, PATCH"],
      ["HEAD", "/v1/account/key", "OPTIONS, POST"],
      ["PROPFIND", "/health", "GET, HEAD, OPTIONS"],
    ] as const
  ) {
    const refused = await workshop.call(`${method} ${path}`);
    const options = await workshop.fetch(`OPTIONS ${path}`);

    assertEquals([options.status, options.headers.get("allow"), options.body], [204, allow, null]);
    assertEquals(refused.headers.get("allow"), allow);
    await assertError(refused, 405, "method_not_allowed", RegExp(`^Allowed methods: ${allow}\\.$`));
  }
});

const setCorsHeaders = createCors(Object.keys(SERVICE_HEADERS));
const ORIGIN = { origin: "https://workshop.example" };

/** Headers for tracing, as Sentry, Datadog and W3C Trace Context send them, beside one of the service. */
const TRACED = "authorization,baggage,sentry-trace,traceparent,x-datadog-trace-id";

Deno.test.each([
  [TRACED, TRACED],
  ["x".repeat(1_024), "x".repeat(1_024)],
  ["x".repeat(1_025), undefined],
  [undefined, undefined],
])(
  "createCors() allows in a preflight response the headers that it asks for, up to 1 KiB: %#",
  (asked, allowed) => {
    const preflight = {
      ...ORIGIN,
      "access-control-request-method": "POST",
      ...(asked !== undefined && { "access-control-request-headers": asked }),
    };
    const headers = new Headers({ allow: "GET, OPTIONS, POST", vary: "Origin" });

    setCorsHeaders(new Request("http://localhost/", { method: "OPTIONS", headers: preflight }), headers);

    assertEquals(Object.fromEntries(headers), {
      allow: "GET, OPTIONS, POST",
      vary: "Origin, Access-Control-Request-Headers",
      "access-control-allow-origin": "*",
      "access-control-allow-methods": "GET, OPTIONS, POST",
      ...(allowed !== undefined && { "access-control-allow-headers": allowed }),
      "access-control-max-age": "86400",
    });
  },
);

Deno.test("createCors() exposes Allow and exactly the headers that the document names", () => {
  const { paths, components } = new Description(OPERATIONS).document;
  const responses = Object.values(paths).flatMap((item) => Object.values(item))
    .flatMap(({ responses }) => Object.values(responses));
  const own = responses.flatMap((response) => "$ref" in response ? [] : Object.keys(response.headers ?? {}));
  const named = new Set([...Object.keys(components.headers), ...own]);
  const headers = new Headers();

  setCorsHeaders(request(ORIGIN), headers);

  const exposed = headers.get("access-control-expose-headers")?.split(", ") ?? [];
  // Every page may read Cache-Control (Fetch standard).
  assertEquals([...exposed, "Cache-Control"].sort(), [...named, "Allow"].sort());
});

const OTHER = { origin: "https://other.example" };

Deno.test.each<[allowedOrigins: AllowedOrigins, shared: string | null]>([
  ["*", "*"],
  [[ORIGIN.origin, "https://b.example"], ORIGIN.origin],
  [[], null],
])("service with the allowed origins %j shares responses with their pages alone", async (...given) => {
  const [allowedOrigins, shared] = given;
  await using service = await Harness.open({ allowedOrigins });
  /** The origin that may read the response, and whether it has any headers of CORS. */
  const access = async (target: string, headers: Record<string, string>) => {
    const response = await service.fetch(target, { headers });
    // Where any origin is allowed, the headers are the same for all.
    const varies = allowedOrigins === "*" ? /^(?!.*Origin)/ : /^Origin\b(?!.*Origin)/;
    assertMatch(response.headers.get("vary") ?? "", varies);
    const names = [...response.headers.keys()].filter((name) => name.startsWith("access-control-"));
    return [response.headers.get("access-control-allow-origin"), names.length > 0];
  };

  for (const target of ["GET /health", "GET /v1/things", "GET /v1/nothing", "OPTIONS /v1/things"]) {
    const headers = { "access-control-request-method": "GET" };
    const isOpen = allowedOrigins === "*";
    assertEquals(await access(target, { ...headers, ...ORIGIN }), [shared, shared !== null]);
    assertEquals(await access(target, { ...headers, ...OTHER }), [isOpen ? "*" : null, isOpen]);
    assertEquals(await access(target, headers), [null, false]);
  }
});

Deno.test("service sends no CORS headers for any path of operators, known or not", async () => {
  const preflight = { ...ORIGIN, "access-control-request-method": "GET" };
  for (const options of [{}, ALL]) {
    await using service = await Harness.open(options);
    for (const path of ["", "/", "/v1", "/v1/nothing", "/v1/accounts"]) {
      for (const [method, headers] of [["GET", ORIGIN], ["PUT", ORIGIN], ["OPTIONS", preflight]] as const) {
        const response = await service.fetch(`${method} /operator${path}`, { headers });
        const names = [...response.headers.keys()].filter((name) => name.startsWith("access-control-"));
        assertEquals([method, path, names], [method, path, []]);
      }
    }
    const missing = await service.fetch("GET /operators", { headers: ORIGIN });
    assertEquals(missing.headers.get("access-control-allow-origin"), "*");
  }
});

Deno.test("service handles each request as it prefers, even if it has answered the same query before", async () => {
  await using workshop = await Workshop.open();

  for (const [query, refusal] of [["?limit=1", 200], ["?Limit=1", 400]] as const) {
    for (const prefer of ["", "handling=strict", "handling=lenient", "handling=strict"]) {
      const isStrict = prefer === "handling=strict";
      const { status, headers } = await workshop.call(`GET /v1/things${query}`, { headers: { prefer } });
      const expected = isStrict ? [refusal, prefer] : [200, null];
      assertEquals([query, prefer, status, headers.get(APPLIED)], [query, prefer, ...expected]);
    }
  }
});

Deno.test("createThing() replays a reply with the preference of the request, not of the first one", async () => {
  await using workshop = await Workshop.open();

  for (const [prefer, replayed] of [[STRICT, null], [{}, "true"], [STRICT, "true"]] as const) {
    const headers = { "idempotency-key": "a", ...prefer };
    const response = await workshop.call("POST /v1/things", { json: HAMMER, headers });
    assertEquals(response.headers.get("idempotency-replayed"), replayed);
    assertEquals(response.headers.get(APPLIED), prefer === STRICT ? "handling=strict" : null);
  }
});

const LONG = "x".repeat(1_000);

Deno.test.each<[field: string, target: string, request: HarnessRequest]>([
  ["name", "POST /v1/things", { json: { weight: "7" } }],
  ["labels[1]", "POST /v1/things", { json: { ...HAMMER, labels: ["a", ""] } }],
  ["limit", "GET /v1/things?limit=0&state=x", {}],
  ["sort", "GET /v1/things?cursor=MQ&sort=-id", {}],
  ["If-Match", "PATCH /v1/things/1", { json: { name: 1 }, headers: { "if-match": "a" } }],
  ["Idempotency-Key", "POST /v1/things", { json: {}, headers: { "idempotency-key": "a, a" } }],
  ["Content-Length", "POST /v1/things", { json: {}, headers: { "content-length": "a" } }],
  ["Host", "GET /v1/things", { headers: { host: "a/b" } }],
  ["Weight", "PATCH /v1/things/1", { json: { Weight: 1, Name: "a" } }],
  ["staet", "GET /v1/things?staet=new", { headers: STRICT }],
  ["a b\n\u202e\ufffd", "PATCH /v1/things/1", { json: { "a b\n\u202e\ud800": 1 } }],
  [LONG, `PATCH /v1/things/1?${LONG}=1`, { json: {} }],
])("the error of an invalid request has the field %j: %s with %j", async (field, target, request) => {
  await using workshop = await Workshop.open();

  const response = await workshop.call(target, request);

  const body = await response.json();
  assertEquals([response.status, body.code, body.field], [400, "invalid_request", field]);
});

Deno.test.each<[code: string, target: string, request: HarnessRequest]>([
  ["invalid_request", "POST /v1/things", { json: [] }],
  ["invalid_json", "POST /v1/things", { body: "{", headers: JSON_TYPE }],
  ["invalid_content_type", "POST /v1/things", { body: "{}", headers: { "content-type": "text/plain" } }],
  ["thing_not_found", "GET /v1/things/0", {}],
  ["precondition_failed", "PATCH /v1/things/1", { json: {}, headers: { "if-match": '"a"' } }],
])("the error %s has no field: %s with %j", async (code, target, request) => {
  await using workshop = await Workshop.open();
  await workshop.add({});

  const body = await (await workshop.call(target, request)).json();

  assertEquals([body.code, "field" in body], [code, false]);
});
