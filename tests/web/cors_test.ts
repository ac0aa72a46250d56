import { assertEquals } from "@std/assert";
import { setCorsHeaders } from "../../src/web/cors.ts";
import { needsToken } from "../../src/web/router.ts";
import { Description } from "../support/openapi.ts";
import { answers, SAMPLES } from "../support/operations.ts";

const ORIGIN = { origin: "https://workshop.example" };
const OPERATIONS = SAMPLES.map(({ operation }) => operation);
/** Request headers that are allowed for every operation. */
const COMMON = ["Authorization", "Content-Type", "X-Request-Id"];
/** A response header that every page may read (Fetch standard). */
const SAFELISTED = "Cache-Control";

Deno.test("setCorsHeaders() lists the path's methods and all request headers in a preflight response", () => {
  const preflight = { ...ORIGIN, "access-control-request-method": "POST" };
  const headers = new Headers({ allow: "GET, OPTIONS, POST" });
  const read = new Set([...COMMON, ...OPERATIONS.flatMap(({ headers }) => Object.keys(headers))]);

  setCorsHeaders(new Request("http://localhost/", { method: "OPTIONS", headers: preflight }), headers);

  assertEquals(Object.fromEntries(headers), {
    allow: "GET, OPTIONS, POST",
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, OPTIONS, POST",
    "access-control-allow-headers": [...read].sort().join(", "),
    "access-control-max-age": "86400",
  });
});

Deno.test("setCorsHeaders() exposes Allow and exactly the headers that the document names", () => {
  const named = Object.keys(Description.of(OPERATIONS).document.components.headers);
  const headers = new Headers();

  setCorsHeaders(new Request("http://localhost/", { headers: ORIGIN }), headers);

  const exposed = headers.get("access-control-expose-headers")?.split(", ") ?? [];
  assertEquals([...exposed, SAFELISTED].sort(), [...named, "Allow"].sort());
});

Deno.test("service lets pages of any origin read every response, except on the operator's paths", async () => {
  for await (const { target, access, response: { headers } } of answers(ORIGIN)) {
    const isOpen = !needsToken(access);
    assertEquals([target, headers.get("access-control-allow-origin")], [target, isOpen ? "*" : null]);
    assertEquals(headers.has("access-control-expose-headers"), isOpen);
  }
});
