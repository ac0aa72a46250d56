import { assertEquals } from "@std/assert";
import { buildRequest, sample } from "../../src/page/script/request.js";

const CREATE = {
  base: "http://localhost:8000",
  method: "POST",
  path: "/v1/things",
  bodyType: "application/json",
  key: "as_test_abcdef",
};
const FIELDS = [
  { name: "Idempotency-Key", place: "header", value: "it's" },
  { name: "If-Match", place: "header", value: "" },
];
const BODY = '{\n  "name": "O\'Hammer \\"X\\"",\n  "weight": 9223372036854775807\n}';

Deno.test("buildRequest() omits empty fields and keeps the body as typed", () => {
  assertEquals(buildRequest(CREATE, FIELDS, BODY), {
    method: "POST",
    url: "http://localhost:8000/v1/things",
    headers: [
      ["Authorization", "Bearer as_test_abcdef"],
      ["Content-Type", "application/json"],
      ["Idempotency-Key", "it's"],
    ],
    body: BODY,
  });
  assertEquals(buildRequest({ ...CREATE, key: "" }, []).headers, []);
});

Deno.test("buildRequest() percent-encodes values in the URL", () => {
  const target = { ...CREATE, method: "GET", path: "/v1/things/{thingId}", key: "" };
  const request = buildRequest(target, [
    { name: "thingId", place: "path", value: "a/b?$&" },
    { name: "status", place: "query", value: "a&b\ud800" },
    { name: "limit", place: "query", value: "" },
  ]);

  assertEquals(request, {
    method: "GET",
    url: "http://localhost:8000/v1/things/a%2Fb%3F%24%26?status=a%26b%EF%BF%BD",
    headers: [],
    body: "",
  });
});

for (
  const [language, program, ...args] of [
    ["curl", "bash", "-c"],
    ["javascript", Deno.execPath(), "eval", "--no-config"],
    ["python", "python3", "-c"],
  ] as const
) {
  Deno.test({
    name: `sample() returns a ${language} program that sends the request`,
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
      const request = buildRequest({ ...CREATE, base: `http://127.0.0.1:${server.addr.port}` }, FIELDS, BODY);

      const { success, stdout } = await new Deno.Command(program, {
        args: [...args, sample(language, request)],
      }).output();

      assertEquals(success, true);
      assertEquals(/422[^]*fine\s*$/.test(new TextDecoder().decode(stdout)), true);
      assertEquals(await arrived, [
        "POST",
        "/v1/things",
        ...request.headers.map(([, value]: readonly [string, string]) => value),
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

Deno.test("sample() returns the request as plain HTTP for the language http", () => {
  assertEquals(
    sample("http", buildRequest(CREATE, [], '{"weight":9223372036854775807}')),
    "POST http://localhost:8000/v1/things\nAuthorization: Bearer as_test_abcdef\n" +
      'Content-Type: application/json\n\n{"weight":9223372036854775807}',
  );
});
