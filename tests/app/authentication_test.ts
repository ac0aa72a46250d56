import { assertEquals } from "@std/assert";
import { call } from "../support/client.ts";
import { Harness } from "../support/harness.ts";
import { KEYS } from "../support/things.ts";

const CHALLENGE = 'Bearer realm="thing-store"';
const MISSING = "Send your API key as 'Authorization: Bearer <API_KEY>'.";
const TWICE = "The Authorization header was sent twice.";
const INVALID = "The API key is not valid.";
const MISTYPED = "The API key is mistyped: its checksum is wrong.";
const QUOTED = "The API key is in quotes; send it without them.";
const OTHER_FORM =
  "This is not an API key. An API key is as_test_ or as_live_ followed by 38 letters and digits.";

/** Status, challenge and body of the response to an invalid key. */
function badKey(message: string = INVALID): unknown[] {
  const body = { code: "invalid_api_key", message, status: 401 };
  return [401, `${CHALLENGE}, error="invalid_token"`, body];
}

/** Status, challenge and body of the response to a request with this header. */
async function answer(service: Harness, authorization?: string): Promise<unknown[]> {
  const headers = authorization === undefined ? {} : { authorization };
  const response = await service.fetch("GET /v1/things", { headers });
  return [response.status, response.headers.get("www-authenticate"), await response.json()];
}

Deno.test("service returns 401 missing_api_key if there is no bearer token", async (t) => {
  await using service = await Harness.open();
  const { apiKey } = await service.createAccount();

  for (
    const form of [
      ...[undefined, "", "KEY", "Bearer", "Bearer ", "Basic KEY", "Token KEY", "BearerKEY"],
      ...["Bearer KEY KEY", "Bearer KEY, KEY", 'Digest username="a", realm="b"'],
      ...["Bearer KEY, Bearer KEY", "Basic a, Bearer KEY"],
    ]
  ) {
    await t.step(`Authorization: ${form}`, async () => {
      const message = /, Bearer/.test(form ?? "") ? TWICE : MISSING;
      const body = { code: "missing_api_key", message, status: 401 };
      assertEquals(await answer(service, form?.replaceAll("KEY", apiKey)), [401, CHALLENGE, body]);
    });
  }
});

Deno.test("service explains malformed keys, and returns the same message for all other invalid keys", async (t) => {
  await using service = await Harness.open();
  const { account, apiKey } = await service.createAccount();
  const closed = await service.createAccount();
  await service.accounts.change(closed.account.id, { closedAt: service.now });
  const typo = apiKey.slice(0, -1) + (apiKey.endsWith("0") ? "1" : "0");

  const replaced = await service.createAccount();
  await service.accounts.rotate(replaced.account.id, 0, service.now);

  for (
    const [what, key, message] of [
      ["mistyped", typo, MISTYPED],
      ["unknown", KEYS.create("staging"), INVALID],
      ["replaced", replaced.apiKey, INVALID],
      ["of a closed account", closed.apiKey, INVALID],
      ["too short", apiKey.slice(0, -1), OTHER_FORM],
      ["too long", `${apiKey}0`, OTHER_FORM],
      ["with an invalid character", `${apiKey.slice(0, -1)}-`, OTHER_FORM],
      ["in capitals", apiKey.toUpperCase(), OTHER_FORM],
      ["an account ID", account.id, OTHER_FORM],
      ["a placeholder", "<API_KEY>", OTHER_FORM],
      ["very long", "x".repeat(100_000), OTHER_FORM],
      ["in quotes", `"${apiKey}"`, QUOTED],
      ["in single quotes", `'${apiKey}'`, QUOTED],
      ["with a quote before it", `"${apiKey}`, QUOTED],
      ["with a quote after it", `${apiKey}'`, QUOTED],
    ] as const
  ) {
    await t.step(what, async () => assertEquals(await answer(service, `Bearer ${key}`), badKey(message)));
  }
});

Deno.test("service accepts the scheme in any case, and any number of spaces around the key", async () => {
  await using service = await Harness.open();
  const { apiKey } = await service.createAccount();

  for (const form of ["Bearer KEY", "bearer KEY", "BEARER KEY", "Bearer    KEY", "Bearer KEY  "]) {
    // Twice, because the second request uses the cached header.
    for (let count = 0; count < 2; count++) {
      const headers = { authorization: form.replace("KEY", apiKey) };
      const response = await service.fetch("GET /v1/things", { headers });
      await response.body?.cancel();
      assertEquals(response.status, 200, form);
    }
  }
});

Deno.test("service accepts a key only in its own environment, even if both share a KV", async () => {
  await using staging = await Harness.open();
  await using production = staging.beside({ environment: "production" });
  const { apiKey } = await staging.createAccount();
  const live = await production.createAccount("free");

  const toStaging = badKey("This is a production key; this service is staging.");
  assertEquals(await answer(staging, `Bearer ${live.apiKey}`), toStaging);
  const toProduction = badKey("This is a staging key; this service is production.");
  assertEquals(await answer(production, `Bearer ${apiKey}`), toProduction);
  assertEquals((await call(production, live.apiKey)).status, 200);
});

Deno.test("service accepts a key from another process at once, even if it was invalid before", async () => {
  await using service = await Harness.open();
  await using origin = await Harness.open();
  const { apiKey } = await origin.createAccount();
  for (let count = 0; count < 2; count++) {
    assertEquals(await answer(service, `Bearer ${apiKey}`), badKey());
  }

  for await (const { key, value } of origin.kv.list({ prefix: [] })) await service.kv.set(key, value);

  assertEquals((await call(service, apiKey)).status, 200);
});
