import { assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  jsonPieces,
  nextCursor,
  readLimits,
  readProblem,
  sortHeaders,
} from "../../src/portal/page/browser/answer.ts";
import { buildRequest, type Field, type Selection } from "../../src/portal/page/browser/request.ts";
import { maskKey, sample } from "../../src/portal/page/browser/samples.ts";

const CREATE: Selection = {
  base: "http://localhost:8000",
  method: "POST",
  path: "/v1/pets",
  bodyType: "application/json",
  key: "as_test_abcdef",
};
const FIELDS: readonly Field[] = [
  { name: "Idempotency-Key", place: "header", type: "string", value: "it's" },
  { name: "name", place: "body", type: "string", value: 'O\'Rex "X"' },
  { name: "categoryId", place: "body", type: "integer", value: "9223372036854775807" },
  { name: "status", place: "body", type: "string", value: "" },
];

Deno.test("buildRequest() leaves out what is empty, and keeps every digit", () => {
  assertEquals(buildRequest(CREATE, FIELDS), {
    method: "POST",
    url: "http://localhost:8000/v1/pets",
    headers: [
      ["Authorization", "Bearer as_test_abcdef"],
      ["Content-Type", "application/json"],
      ["Idempotency-Key", "it's"],
    ],
    body: '{"name":"O\'Rex \\"X\\"","categoryId":9223372036854775807}',
  });
});

Deno.test("buildRequest() encodes what goes into the URL", () => {
  const target = { ...CREATE, method: "GET", path: "/v1/pets/{petId}", bodyType: "", key: "" };
  const request = buildRequest(target, [
    { name: "petId", place: "path", type: "integer", value: "a/b?" },
    { name: "status", place: "query", type: "string", value: "a&b\ud800" },
    { name: "limit", place: "query", type: "integer", value: "" },
  ]);

  assertEquals(request, {
    method: "GET",
    url: "http://localhost:8000/v1/pets/a%2Fb%3F?status=a%26b%EF%BF%BD",
    headers: [],
    body: undefined,
  });
});

Deno.test("buildRequest() sends what is no integer as a string, for the service to say so", () => {
  for (const value of ["x", "01", "1.5", "1e3", "0x1"]) {
    const field = { name: "categoryId", place: "body", type: "integer", value };
    assertEquals(buildRequest(CREATE, [field]).body, `{"categoryId":"${value}"}`);
  }
});

for (
  const [language, program, ...args] of [
    ["curl", "bash", "-c"],
    ["javascript", Deno.execPath(), "eval", "--no-config"],
    ["python", "python3", "-c"],
  ] as const
) {
  Deno.test({
    name: `sample() gives a program that sends the request, in ${language}`,
    ignore: !await isInstalled(program),
    async fn() {
      const { promise: arrived, resolve } = Promise.withResolvers<unknown>();
      await using server = Deno.serve(
        { hostname: "127.0.0.1", port: 0, onListen: () => {} },
        async (request) => {
          const { method, headers } = request;
          const names = ["authorization", "content-type", "idempotency-key"];
          resolve([
            method,
            new URL(request.url).pathname,
            ...names.map((name) => headers.get(name)),
            await request.text(),
          ]);
          return new Response("fine", { status: 422 });
        },
      );
      const request = buildRequest({ ...CREATE, base: `http://127.0.0.1:${server.addr.port}` }, FIELDS);

      const { success, stdout } = await new Deno.Command(program, {
        args: [...args, sample(language, request)],
      }).output();

      assertEquals(success, true);
      assertEquals(/422[^]*fine\s*$/.test(new TextDecoder().decode(stdout)), true);
      assertEquals(await arrived, [
        "POST",
        "/v1/pets",
        ...request.headers.map(([, value]) => value),
        request.body,
      ]);
    },
  });
}

async function isInstalled(program: string): Promise<boolean> {
  try {
    return (await new Deno.Command(program, { args: ["--version"], stdout: "null" }).output()).success;
  } catch {
    return false;
  }
}

Deno.test("sample() gives the request as it is sent, without any language", () => {
  assertEquals(
    sample("http", buildRequest(CREATE, FIELDS.slice(2))),
    "POST http://localhost:8000/v1/pets\nAuthorization: Bearer as_test_abcdef\n" +
      'Content-Type: application/json\n\n{"categoryId":9223372036854775807}',
  );
});

Deno.test("maskKey() hides all but the beginning of the key", () => {
  assertEquals(maskKey("Bearer as_test_abcdef", "as_test_abcdef"), "Bearer as_test_abc…");
  assertEquals(maskKey("Bearer API_KEY", ""), "Bearer API_KEY");
  assertEquals(maskKey("Bearer a", "a"), "Bearer a");
});

Deno.test("jsonPieces() indents as JSON.stringify() does, whatever the JSON", () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => {
    const pieces = jsonPieces(JSON.stringify(value));
    assertEquals(pieces.map(({ text }) => text).join(""), JSON.stringify(value, null, 2));
  }));
});

Deno.test("jsonPieces() tells names, strings, numbers and literals apart, and keeps every digit", () => {
  const pieces = jsonPieces('{"id":9223372036854775807,"a":["b",null]}').filter(({ kind }) =>
    kind !== "plain"
  );

  assertEquals(pieces.map(({ kind, text }) => [kind, text]), [
    ["name", '"id"'],
    ["number", "9223372036854775807"],
    ["name", '"a"'],
    ["string", '"b"'],
    ["literal", "null"],
  ]);
});

Deno.test("readLimits() reads every window of the headers", () => {
  const headers = new Headers({
    "ratelimit-policy": '"minute";q=60;w=60, "day";q=1000;w=86400',
    "ratelimit": '"minute";r=59;t=14, "day";r=999;t=4934',
  });

  assertEquals(readLimits(headers), [
    { name: "minute", limit: 60, remaining: 59, seconds: 14 },
    { name: "day", limit: 1_000, remaining: 999, seconds: 4_934 },
  ]);
  assertEquals(readLimits(new Headers()), []);
});

Deno.test("sortHeaders() puts first what a client acts on, and leaves out none", () => {
  const { first, rest } = sortHeaders(
    new Headers({ "Date": "now", "Retry-After": "5", "ETag": '"a"', "X-RateLimit-Limit": "1", "Vary": "b" }),
  );

  assertEquals(first.map(([name]) => name), ["retry-after", "etag", "x-ratelimit-limit"]);
  assertEquals(rest.map(([name]) => name), ["date", "vary"]);
});

Deno.test("nextCursor() reads the link to the next page, and no other", () => {
  assertEquals(nextCursor('<http://a/v1/pets?limit=2&cursor=Mg>; rel="next"'), "Mg");
  assertEquals(nextCursor('<http://a/v1/pets?cursor=Mg>; rel="prev", <http://a/b>; rel="next"'), "");
  assertEquals(nextCursor(null), "");
});

Deno.test("readProblem() reads an Error body, and nothing else", () => {
  assertEquals(readProblem('{"code":"a","message":"b \\"c\\"","status":400}'), {
    code: "a",
    message: 'b "c"',
  });
  for (const text of ["", "null", "[]", "<html>", '"code"']) {
    assertEquals(readProblem(text), { code: "", message: "" });
  }
});
