import { assertEquals } from "@std/assert";
import { setCorsHeaders } from "../../../src/http/cors.ts";
import { Description } from "../../support/openapi.ts";
import { answers, SAMPLES } from "../../support/operations.ts";

const ORIGIN = { origin: "https://shop.example" };
const OPERATIONS = SAMPLES.map(({ operation }) => operation);
/** What a browser asks a page's script for, and what any request may have. */
const OF_ANY = ["Authorization", "Content-Type", "X-Request-Id"];
/** A response header that any page may read anyway (Fetch standard). */
const SAFELISTED = "Cache-Control";

Deno.test("setCorsHeaders() answers a preflight with the path's methods and the headers that are read", () => {
  const asks = { ...ORIGIN, "access-control-request-method": "POST" };
  const headers = new Headers({ allow: "GET, OPTIONS, POST" });
  const read = new Set([...OF_ANY, ...OPERATIONS.flatMap(({ headers }) => Object.keys(headers))]);

  setCorsHeaders(new Request("http://localhost/", { method: "OPTIONS", headers: asks }), headers);

  assertEquals(Object.fromEntries(headers), {
    allow: "GET, OPTIONS, POST",
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, OPTIONS, POST",
    "access-control-allow-headers": [...read].sort().join(", "),
    "access-control-max-age": "86400",
  });
});

Deno.test("setCorsHeaders() lets any page read just the headers that the document names, and Allow", () => {
  const named = Object.keys(Description.of(OPERATIONS).document.components.headers);
  const headers = new Headers();

  setCorsHeaders(new Request("http://localhost/", { headers: ORIGIN }), headers);

  const exposed = headers.get("access-control-expose-headers")?.split(", ") ?? [];
  assertEquals([...exposed, SAFELISTED].sort(), [...named, "Allow"].sort());
});

Deno.test("createApp() lets pages of any origin read what every operation answers, but for the operator's", async () => {
  for await (const { target, access, response: { headers } } of answers(ORIGIN)) {
    const isOpen = access !== "operator";
    assertEquals([target, headers.get("access-control-allow-origin")], [target, isOpen ? "*" : null]);
    assertEquals(headers.has("access-control-expose-headers"), isOpen);
  }
});
