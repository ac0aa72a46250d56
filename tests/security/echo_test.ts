import { assertEquals } from "@std/assert";
import { REX, Shop } from "../pets/shop.ts";

const MARKUP = `<img src=x onerror=alert(1)>"'&</script>`;
const RANDOM = "ThisIsNoKeyThoughItLooksLikeOneOfThose";
const SECRET = `as_test_${RANDOM}`;
const LIVE = `as_live_${RANDOM}`;

Deno.test("service sends markup in names as JSON that no browser takes for a page", async () => {
  await using shop = await Shop.open();
  const json = { ...REX, name: MARKUP, message: MARKUP };

  for (
    const [target, request] of [
      ["POST /v1/pets", { json }],
      ["GET /v1/pets", {}],
      ["GET /v1/pets/1", {}],
      ["PATCH /v1/pets/1", { json }],
      ["POST /v1/messages", { json }],
      ["POST /v1/accounts", { json }],
      [`GET /v1/pets?status=${encodeURIComponent(MARKUP)}`, {}],
      [`GET /v1/${encodeURIComponent(MARKUP)}`, {}],
    ] as const
  ) {
    const response = await shop.call(target, request);
    const { headers } = response;
    const told = ["content-type", "x-content-type-options"].map((name) => headers.get(name));
    assertEquals([target, ...told], [target, "application/json", "nosniff"]);
    assertEquals(headers.has("content-disposition"), false);
    // What is refused is not repeated either.
    assertEquals((await response.text()).includes("onerror"), response.status < 400, target);
  }
});

Deno.test("service repeats no credential in an answer, whatever it was sent in", async () => {
  await using shop = await Shop.open();
  const given = { key: SECRET, json: { ...REX, status: SECRET, message: SECRET.repeat(300) } };

  for (
    const [target, request] of [
      ["GET /v1/pets", given],
      ["POST /v1/pets", { ...given, key: shop.key }],
      ["POST /v1/messages", { ...given, key: shop.key }],
      ["POST /v1/pets", { key: shop.key, json: REX, headers: { "idempotency-key": `"${SECRET}` } }],
      ["POST /v1/pets", { key: shop.key, json: REX, headers: { "content-encoding": SECRET } }],
      ["POST /v1/pets", { key: shop.key, body: "{", headers: { "content-type": SECRET } }],
      [`GET /v1/pets?status=${SECRET}&limit=${SECRET}`, { key: shop.key }],
      [`GET /v1/${SECRET}`, { key: shop.key }],
      [`GET /Pets/${SECRET}/`, { key: shop.key }],
      ["GET /v1/pets", { key: `"${SECRET}"` }],
      ["GET /v1/pets", { key: LIVE }],
      [`${SECRET} /v1/pets`, { key: shop.key }],
    ] as const
  ) {
    const response = await shop.fetch(target, target.startsWith("GET") ? { key: request.key } : request);
    const text = JSON.stringify([...response.headers]) + await response.text();
    assertEquals([target, response.status >= 400, text.includes(RANDOM)], [target, true, false]);
  }
});
