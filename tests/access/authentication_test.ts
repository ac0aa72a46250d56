import { assertEquals } from "@std/assert";
import { createSecret } from "../../src/access/secret.ts";
import { Harness } from "../harness.ts";

const CHALLENGE = 'Bearer realm="animal-store"';
const INVALID = {
  status: 401,
  challenge: `${CHALLENGE}, error="invalid_token"`,
  body: { code: "invalid_api_key", message: "The API key is not valid.", status: 401 },
};

async function answer(service: Harness, authorization?: string): Promise<typeof INVALID> {
  const headers = authorization === undefined ? {} : { authorization };
  const response = await service.fetch("GET /v1/pets", { headers });
  return {
    status: response.status,
    challenge: response.headers.get("www-authenticate") ?? "",
    body: await response.json(),
  };
}

Deno.test("createApp() asks for a key when there is none in bearer form", async (t) => {
  using service = await Harness.open();
  const { secret } = await service.issueKey();

  for (
    const form of [
      undefined,
      "",
      "KEY",
      "Bearer",
      "Bearer ",
      "Basic KEY",
      "Token KEY",
      "BearerKEY",
      "Bearer KEY KEY",
      "Bearer KEY, Bearer KEY",
    ]
  ) {
    await t.step(`Authorization: ${form}`, async () => {
      const authorization = form?.replaceAll("KEY", secret);
      const { status, challenge, body } = await answer(service, authorization);

      assertEquals(status, 401);
      assertEquals(challenge, CHALLENGE);
      assertEquals(body, {
        code: "missing_api_key",
        message: "Send your API key as 'Authorization: Bearer <API_KEY>'.",
        status: 401,
      });
    });
  }
});

Deno.test("createApp() says the same of every bad key, whatever is wrong with it", async (t) => {
  using service = await Harness.open();
  const { secret } = await service.issueKey();
  const revoked = await service.issueKey();
  await service.keys.revoke(revoked.key.id, service.now);
  const last = secret.endsWith("0") ? "1" : "0";

  for (
    const [what, key] of [
      ["mistyped", secret.slice(0, -1) + last],
      ["unknown", createSecret("staging")],
      ["revoked", revoked.secret],
      ["of production", createSecret("production")],
      ["too short", secret.slice(0, -1)],
      ["too long", `${secret}0`],
      ["a key's id", revoked.key.id],
      ["in quotes", `"${secret}"`],
      ["very long", "x".repeat(100_000)],
    ] as const
  ) {
    await t.step(what, async () => assertEquals(await answer(service, `Bearer ${key}`), INVALID));
  }
});

Deno.test("createApp() takes the scheme in any letters and any number of spaces after it", async () => {
  using service = await Harness.open();
  const { secret } = await service.issueKey();

  for (const scheme of ["Bearer ", "bearer ", "BEARER ", "Bearer    "]) {
    const response = await service.fetch("GET /v1/pets", { headers: { authorization: scheme + secret } });
    await response.body?.cancel();
    assertEquals(response.status, 200, scheme);
  }
});

Deno.test("createApp() asks for no key where a route is public", async () => {
  using service = await Harness.open();

  for (const path of ["/health", "/ready", "/docs/deprecations"]) {
    const response = await service.fetch(`GET ${path}`);
    await response.body?.cancel();
    assertEquals([path, response.status], [path, 200]);
  }
});

Deno.test("createApp() accepts a key made by another process at once, also when it was tried before", async () => {
  using service = await Harness.open();
  const other = new Harness(service.kv);
  const { secret } = await other.issueKey();
  const rows = await Array.fromAsync(service.kv.list({ prefix: [] }));
  for (const { key } of rows) await service.kv.delete(key);
  assertEquals(await answer(service, `Bearer ${secret}`), INVALID);

  for (const { key, value } of rows) await service.kv.set(key, value);

  const response = await service.fetch("GET /v1/pets", { key: secret });
  await response.body?.cancel();
  assertEquals(response.status, 200);
});
