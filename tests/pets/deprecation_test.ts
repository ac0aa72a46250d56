import { assertEquals, assertMatch } from "@std/assert";
import { assertError } from "../support/assertions.ts";
import { REX, Shop } from "./shop.ts";

const SUNSET = Date.UTC(2030, 11, 5);

/** Asserts the headers of RFC 9745, RFC 8594 and RFC 8288. */
function assertDeprecated({ headers, status }: Response): void {
  const also = status === 404 ? ', </v1/openapi.json>; rel="service-desc"' : "";
  assertEquals(headers.get("deprecation"), `@${Date.UTC(2025, 11, 5) / 1000}`);
  assertEquals(headers.get("sunset"), "Thu, 05 Dec 2030 00:00:00 GMT");
  assertEquals(
    headers.get("link"),
    `</docs/deprecations>; rel="deprecation"; type="text/plain", </v1/pets>; rel="successor-version"${also}`,
  );
}

Deno.test("getPet() announces its removal until its sunset, and returns 410 from then on", async () => {
  await using shop = await Shop.open();
  await shop.add("available");

  shop.now = SUNSET - 1;
  const last = await Promise.all([shop.call("GET /v1/pets/1"), shop.call("GET /v1/pets/2")]);
  shop.now = SUNSET;
  const gone = await Promise.all([shop.call("GET /v1/pets/1"), shop.call("GET /v1/pets/rex")]);
  const withoutKey = await shop.fetch("GET /v1/pets/1");

  assertEquals(last.map(({ status }) => status), [200, 404]);
  for (const response of [...last, ...gone, withoutKey]) assertDeprecated(response);
  for (const response of gone) {
    await assertError(response, 410, "gone", /status filter/);
  }
  await assertError(withoutKey, 401, "missing_api_key");
});

Deno.test("getPet() announces its removal in every response", async () => {
  await using shop = await Shop.open();
  await shop.add("available");
  const suspended = await shop.createAccount();
  await shop.accounts.suspend(suspended.account.id, shop.now);
  const spent = await shop.createAccount({ minute: 1, day: 1 });
  const etag = (await shop.call("GET /v1/pets/1")).headers.get("etag") ?? "";

  const responses = [
    await shop.call("GET /v1/pets/1"),
    await shop.call("HEAD /v1/pets/1"),
    await shop.call("GET /v1/pets/1", { headers: { "if-none-match": etag } }),
    await shop.call("GET /v1/pets/1?x=1", { headers: { prefer: "handling=strict" } }),
    await shop.fetch("GET /v1/pets/1"),
    await shop.fetch("GET /v1/pets/1", { key: suspended.apiKey }),
    await shop.call("GET /v1/pets/rex"),
    await shop.fetch("GET /v1/pets/1", { key: spent.apiKey }),
    await shop.fetch("GET /v1/pets/1", { key: spent.apiKey }),
  ];
  shop.now = SUNSET;
  responses.push(await shop.call("GET /v1/pets/1"));
  await shop.stop();
  responses.push(await shop.call("GET /v1/pets/1"));

  assertEquals(responses.map(({ status }) => status), [
    200,
    200,
    304,
    400,
    401,
    403,
    404,
    200,
    429,
    410,
    503,
  ]);
  for (const response of responses) assertDeprecated(response);
});

Deno.test("service keeps the other operations after the sunset of getPet()", async () => {
  await using shop = await Shop.open();
  shop.now = SUNSET;

  const responses = [
    await shop.call("POST /v1/pets", { json: REX }),
    await shop.call("GET /v1/pets"),
    await shop.patch(1, { name: "Tom" }),
    await shop.call("DELETE /v1/pets/1"),
  ];

  assertEquals(responses.map(({ status }) => status), [201, 200, 200, 204]);
  for (const { headers } of responses) {
    assertEquals(["deprecation", "sunset", "link"].map((name) => headers.get(name)), [null, null, null]);
  }
});

Deno.test("service does not allow GET of an animal any more after its sunset", async () => {
  await using shop = await Shop.open();
  const allowed = async () => {
    const responses = [await shop.call("OPTIONS /v1/pets/1"), await shop.call("PUT /v1/pets/1")];
    return responses.map(({ headers }) => headers.get("allow"));
  };

  shop.now = SUNSET - 1;
  assertEquals(await allowed(), Array(2).fill("DELETE, GET, HEAD, OPTIONS, PATCH"));
  shop.now = SUNSET;
  assertEquals(await allowed(), Array(2).fill("DELETE, OPTIONS, PATCH"));
});

Deno.test("getPet() links to a public document about its deprecation", async () => {
  await using shop = await Shop.open();
  const { headers } = await shop.call("GET /v1/pets/1");
  const path = /<([^>]+)>; rel="deprecation"/.exec(headers.get("link") ?? "")?.[1];

  const document = await shop.fetch(`GET ${path}`);

  assertEquals(document.status, 200);
  assertEquals(document.headers.get("content-type"), "text/plain; charset=utf-8");
  assertEquals(document.headers.get("x-ratelimit-limit"), null);
  assertMatch(await document.text(), /5 December 2030[^]+GET \/v1\/pets with the status filter/);
});
