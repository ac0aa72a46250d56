import { assertEquals } from "@std/assert";
import { setCorsHeaders } from "../../src/http/cors.ts";
import { variedResponses } from "./varied_responses.ts";

const ORIGIN = { origin: "https://shop.example" };
const FOR_PREFLIGHT = [
  "access-control-allow-headers",
  "access-control-allow-methods",
  "access-control-max-age",
];
const FOR_BROWSERS = [
  "access-control-allow-origin",
  "access-control-expose-headers",
  "vary",
  "x-content-type-options",
];
/** Response headers that any page may read anyway (Fetch standard). */
const SAFELISTED = ["cache-control", "content-type"];

Deno.test("setCorsHeaders() answers a preflight with the path's methods and the headers that are read", () => {
  const asks = { ...ORIGIN, "access-control-request-method": "POST" };
  const headers = new Headers({ allow: "GET, OPTIONS, POST" });

  setCorsHeaders(new Request("http://localhost/", { method: "OPTIONS", headers: asks }), headers);

  assertEquals(Object.fromEntries(headers), {
    allow: "GET, OPTIONS, POST",
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, OPTIONS, POST",
    "access-control-allow-headers":
      "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, X-Request-Id",
    "access-control-max-age": "86400",
  });
});

Deno.test("createApp() lets any page read just the headers that a client has a use for", async () => {
  const sent = new Set<string>();
  const exposed = new Set<string>();

  for (const { headers } of await variedResponses(ORIGIN)) {
    assertEquals(headers.get("access-control-allow-origin"), "*");
    for (const name of headers.keys()) sent.add(name);
    const list = headers.get("access-control-expose-headers")?.toLowerCase().split(", ") ?? [];
    for (const name of list) exposed.add(name);
  }

  assertEquals([...sent].sort(), [...FOR_PREFLIGHT, ...FOR_BROWSERS, ...SAFELISTED, ...exposed].sort());
});
