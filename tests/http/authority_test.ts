import { assertEquals } from "@std/assert";
import { isAuthority } from "../../src/http/authority.ts";
import { Harness } from "../harness.ts";
import { assertError, assertLimitHeaders } from "./assertions.ts";

const GOOD = [
  "localhost",
  "pets.example:8443",
  "my_pets-1.example.",
  "192.0.2.1:80",
  "[2001:db8::1]:8000",
  "[::1]",
];
const BAD = [
  "a/v1/health",
  "a?b",
  "a#b",
  "user@pets.example",
  "a:b",
  "a:123456",
  "::1",
  "[::1",
  "a b",
  "é.example",
];

Deno.test.each(GOOD)("isAuthority() takes %s", (text) => {
  assertEquals(isAuthority(text), true);
});

Deno.test.each([...BAD, "", ":80"])("isAuthority() refuses '%s'", (text) => {
  assertEquals(isAuthority(text), false);
});

Deno.test.each([...GOOD, ""])("app() serves a request with the Host '%s'", async (host) => {
  using service = await Harness.open();

  const response = await service.fetch("GET /health", { headers: { host } });

  assertEquals(response.status, 200);
});

Deno.test.each(BAD)("app() refuses a request with the Host '%s'", async (host) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const response = await service.fetch("GET /v1/pets", { key, headers: { host } });

  assertLimitHeaders(response);
  await assertError(response, 400, "invalid_request", /Host header must be/);
});
