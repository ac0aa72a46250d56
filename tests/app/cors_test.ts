import { needsToken } from "../../src/resource/access.ts";
import { assertEquals, assertMatch } from "@std/assert";
import { createCors } from "../../src/web/cors.ts";
import { SERVICE_HEADERS } from "../../src/resource/response_headers.ts";
import { Description } from "../support/openapi.ts";
import { Harness } from "../support/harness.ts";
import { ALL, answers, SAMPLES } from "../support/operations.ts";

const setCorsHeaders = createCors(Object.keys(SERVICE_HEADERS));
const ORIGIN = { origin: "https://workshop.example" };
const OPERATIONS = SAMPLES.map(({ operation }) => operation);
/** A response header that every page may read (Fetch standard). */
const SAFELISTED = "Cache-Control";

/** A header for tracing, as Sentry, Datadog and W3C Trace Context send it, beside one of the service. */
const TRACED = "authorization,baggage,sentry-trace,traceparent,x-datadog-trace-id";

Deno.test.each([
  [TRACED, TRACED],
  ["x".repeat(1_024), "x".repeat(1_024)],
  ["x".repeat(1_025), undefined],
  [undefined, undefined],
])("createCors() allows in a preflight response the headers %s, up to 1 KiB", (asked, allowed) => {
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
});

Deno.test("createCors() exposes Allow and exactly the headers that the document names", () => {
  const named = Object.keys(new Description(OPERATIONS).document.components.headers);
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

Deno.test("service sends no CORS headers for any path of operators, known or not", async () => {
  await using closed = await Harness.open();
  await using open = await Harness.open(ALL);
  const preflight = { ...ORIGIN, "access-control-request-method": "GET" };

  for (const service of [closed, open]) {
    for (
      const path of [
        "/operator",
        "/operator/",
        "/operator/v1",
        "/operator/v1/nothing",
        "/operator/v1/accounts",
      ]
    ) {
      for (const [method, headers] of [["GET", ORIGIN], ["PUT", ORIGIN], ["OPTIONS", preflight]] as const) {
        const response = await service.fetch(`${method} ${path}`, { headers });
        const names = [...response.headers.keys()].filter((name) => name.startsWith("access-control-"));
        assertEquals([method, path, names], [method, path, []]);
      }
    }
  }
  const missing = await open.fetch("GET /operators", { headers: ORIGIN });
  assertEquals(missing.headers.get("access-control-allow-origin"), "*");
});

Deno.test("service sends the common headers, and no CORS headers without an Origin", async () => {
  for await (const { target, response: { headers } } of answers({})) {
    for (const [name, value] of [["x-content-type-options", "nosniff"], ["vary", "Origin"]] as const) {
      assertEquals([target, headers.get(name)?.startsWith(value)], [target, true]);
    }
    assertMatch(headers.get("x-request-id") ?? "", /^[\x21-\x7e]+$/);
    assertEquals([...headers.keys()].filter((name) => name.startsWith("access-control-")), []);
  }
});
