import { assertEquals, assertMatch, assertNotEquals } from "@std/assert";
import { createRequestIds, hasValidHost, targetOf } from "../../src/app/request.ts";
import { assertError, assertLimitHeaders } from "../support/assertions.ts";
import { Harness } from "../support/harness.ts";
import { ALL, SAMPLES } from "../support/operations.ts";

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
  for (const host of [...GOOD, "", LONGEST]) {
    assertEquals([host, hasValidHost(request({ host }), targetOf(request({ host }).url))], [host, true]);
  }
  for (const host of [...BAD, "a b", `a${LONGEST}`]) {
    assertEquals([host, hasValidHost(request({ host }), targetOf(request({ host }).url))], [host, false]);
  }
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

Deno.test.each([
  ["http://things.example", "http://things.example"],
  ["https://things.example", "https://things.example"],
  // A vsock, which only a front end can reach.
  ["http+vsock://things.example", "https://things.example"],
  // Schemes that a client may send over HTTP/2.
  ["javascript://things.example", "https://things.example"],
  ["httpx://things.example", "https://things.example"],
])("service starts URLs only with http or https: %s becomes %s", async (origin, base) => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount("free");
  const send = (method: string, path: string, body: string | null) =>
    service.app.fetch(
      new Request(origin + path, {
        method,
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body,
      }),
      { remoteAddr: { transport: "tcp", hostname: "192.0.2.1", port: 1 } },
    );

  const created = await send("POST", "/v1/things", '{"name":"Hammer","weight":1}');
  await send("POST", "/v1/things", '{"name":"Tom","weight":1}');
  const listed = await send("GET", "/v1/things?limit=1", null);

  assertEquals([created.status, listed.status], [201, 200]);
  assertEquals(created.headers.get("location"), `${base}/v1/things/1`);
  assertEquals(created.headers.get("content-location"), `${base}/v1/things/1`);
  assertEquals(listed.headers.get("link")?.split("?")[0], `<${base}/v1/things`);
});

Deno.test("service rejects a bad Host on every path, and charges the key, or else the address", async () => {
  for (const target of [...SAMPLES.map(({ target }) => target), "GET /nothing", "GET /v1x"]) {
    await using service = await Harness.open(ALL);
    const { apiKey: key } = await service.createAccount("free");
    const remaining: (string | null)[] = [];

    for (const caller of [{ key }, { key }, {}, {}]) {
      const response = await service.fetch(target, { ...caller, headers: { host: "a/b" } });
      remaining.push(response.headers.get("x-ratelimit-remaining"));
      assertLimitHeaders(response);
      await assertError(response, 400, "invalid_request", /Host header must be/);
    }

    assertEquals([target, ...remaining], [target, "59", "58", "59", "58"]);
  }
});

Deno.test("service says that the Host was sent twice", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();

  const response = await service.fetch("GET /v1/things", {
    key,
    headers: { host: "a.example, b.example:80" },
  });

  await assertError(response, 400, "invalid_request", /^The Host was sent twice\.$/);
});

Deno.test("service checks Host and method of each request, even if the path was requested before", async () => {
  await using service = await Harness.open();
  const { apiKey: key } = await service.createAccount();
  const statuses: number[] = [];

  for (const host of ["localhost:8000", "a/b", "", "a/b", "localhost:8000"]) {
    for (const method of ["GET", "PUT", "GET"]) {
      statuses.push((await service.fetch(`${method} /v1/things`, { key, headers: { host } })).status);
    }
  }

  const [good, bad] = [[200, 405, 200], [400, 400, 400]];
  assertEquals(statuses, [good, bad, good, bad, good].flat());
});

Deno.test.each([
  [undefined, "http://localhost:8000"],
  ["https://things.example/workshop", "https://things.example/workshop"],
])(
  "service with PUBLIC_URL %s starts its URLs with %s, and ignores forwarding headers",
  async (publicUrl, base) => {
    await using service = await Harness.open({ publicUrl });
    const { apiKey: key } = await service.createAccount();
    const headers = {
      "x-forwarded-host": "evil.example",
      "x-forwarded-proto": "https",
      forwarded: "host=evil.example;proto=https",
    };
    const json = { name: "Hammer", weight: 7 };

    const created = await service.fetch("POST /v1/things", { key, headers, json });
    await service.fetch("POST /v1/things", { key, json });
    const listed = await service.fetch("GET /v1/things?limit=1", { key, headers });

    assertEquals(created.headers.get("location"), `${base}/v1/things/1`);
    assertEquals(listed.headers.get("link")?.split("?")[0], `<${base}/v1/things`);
  },
);

const GENERATED = /^[\da-f]{8}-[\da-f]{4}-\d+$/;

Deno.test("requestId() returns the client's ID of up to 64 visible characters, or generates one", () => {
  const requestId = createRequestIds();
  for (const id of ["7", "trace-1.2:3/4", "!~", "x".repeat(64)]) {
    assertEquals(requestId(request({ "x-request-id": id })), id);
  }
  for (const id of ["", "two words", "tab\tbed", "caf\u00e9", "a, b", "x".repeat(65)]) {
    assertMatch(requestId(request({ "x-request-id": id })), GENERATED);
  }
});

Deno.test("requestId() generates a different ID for each request and in each process", () => {
  const requestId = createRequestIds();
  const [first, second] = [requestId(request()), requestId(request())];

  assertMatch(first, GENERATED);
  assertNotEquals(second, first);
  assertNotEquals(createRequestIds()(request()), first);
});
