import { assertEquals } from "@std/assert";
import fc from "fast-check";
import {
  buildRequest,
  countAnswer,
  duration,
  jsonPieces,
  maskKey,
  minuteReset,
  nextCursor,
  printsOf,
  raceSize,
  readLimits,
  readProblem,
  sample,
  tally,
} from "../../../src/page/page.js";

const CREATE = {
  base: "http://localhost:8000",
  method: "POST",
  path: "/v1/pets",
  bodyType: "application/json",
  key: "as_test_abcdef",
};
const FIELDS = [
  { name: "Idempotency-Key", place: "header", value: "it's" },
  { name: "If-Match", place: "header", value: "" },
];
const BODY = '{\n  "name": "O\'Rex \\"X\\"",\n  "categoryId": 9223372036854775807\n}';

Deno.test("buildRequest() omits empty fields and keeps the body as typed", () => {
  assertEquals(buildRequest(CREATE, FIELDS, BODY), {
    method: "POST",
    url: "http://localhost:8000/v1/pets",
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
  const target = { ...CREATE, method: "GET", path: "/v1/pets/{petId}", key: "" };
  const request = buildRequest(target, [
    { name: "petId", place: "path", value: "a/b?$&" },
    { name: "status", place: "query", value: "a&b\ud800" },
    { name: "limit", place: "query", value: "" },
  ]);

  assertEquals(request, {
    method: "GET",
    url: "http://localhost:8000/v1/pets/a%2Fb%3F%24%26?status=a%26b%EF%BF%BD",
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
        "/v1/pets",
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
    sample("http", buildRequest(CREATE, [], '{"categoryId":9223372036854775807}')),
    "POST http://localhost:8000/v1/pets\nAuthorization: Bearer as_test_abcdef\n" +
      'Content-Type: application/json\n\n{"categoryId":9223372036854775807}',
  );
});

Deno.test("maskKey() replaces all but the beginning of a key with asterisks", () => {
  assertEquals(maskKey("as_test_abcdef"), "as_test_abcd****");
  assertEquals(maskKey("a"), "a");
});

Deno.test("duration() formats seconds, minutes and hours", () => {
  assertEquals([1, 99, 100, 5_999, 6_000, 86_400].map(duration), [
    "1 s",
    "99 s",
    "2 min",
    "100 min",
    "2 h",
    "24 h",
  ]);
});

Deno.test("jsonPieces() indents any JSON like JSON.stringify()", () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => {
    const pieces = jsonPieces(JSON.stringify(value));
    assertEquals(pieces.map(([, text]: [string, string]) => text).join(""), JSON.stringify(value, null, 2));
  }));
});

Deno.test("jsonPieces() distinguishes names, strings, numbers and literals, and keeps every digit", () => {
  const pieces = jsonPieces('{"id":9223372036854775807,"a":["b",null]}').filter(([kind]: [string, string]) =>
    kind !== "plain"
  );

  assertEquals(pieces, [
    ["name", '"id"'],
    ["number", "9223372036854775807"],
    ["name", '"a"'],
    ["string", '"b"'],
  ]);
});

Deno.test("readLimits() returns every window in the headers", () => {
  const headers = new Headers({
    "ratelimit-policy": '"minute";q=60;w=60, "day";q=1000;w=86400',
    "ratelimit": '"minute";r=59;t=14, "day";r=999;t=4934',
  });

  assertEquals(readLimits(headers), [
    { name: "minute", limit: 60, left: 59, seconds: 14 },
    { name: "day", limit: 1_000, left: 999, seconds: 4_934 },
  ]);
  assertEquals(readLimits(new Headers()), []);
});

Deno.test("nextCursor() returns the cursor of the link to the next page only", () => {
  assertEquals(nextCursor('<http://a/v1/pets?limit=2&cursor=Mg%3D>; rel="next"'), "Mg=");
  assertEquals(nextCursor('<http://a/v1/pets?cursor=Mg>; rel="prev", <http://a/b>; rel="next"'), "");
  assertEquals(nextCursor(null), "");
});

Deno.test("readProblem() returns the code and message of an Error body, otherwise empty texts", () => {
  assertEquals(readProblem('{"code":"a","message":"b \\"c\\"","status":400}'), {
    code: "a",
    message: 'b "c"',
  });
  for (const text of ["", "null", "[]", "<html>", '"code"']) {
    assertEquals(readProblem(text), { code: "", message: "" });
  }
});

/** Rate limit headers under limits of 60 requests a minute and 1,000 a day. */
function limitHeaders({ minute, day = 900, seconds = 30, reset = 1_000 }: {
  minute: number;
  day?: number;
  seconds?: number;
  reset?: number;
}): Headers {
  return new Headers({
    "ratelimit-policy": '"minute";q=60;w=60, "day";q=1000;w=86400',
    "ratelimit": `"minute";r=${minute};t=${seconds}, "day";r=${day};t=3600`,
    "x-ratelimit-limit": "60",
    "x-ratelimit-reset": `${reset}`,
  });
}

Deno.test("minuteReset() returns the end of the minute even if X-RateLimit-Reset is that of the day", () => {
  const headers = limitHeaders({ minute: 59, day: 3, seconds: 20, reset: 1_020 });
  assertEquals(minuteReset(headers), 1_020);
  headers.set("x-ratelimit-limit", "1000");
  headers.set("x-ratelimit-reset", "4600");
  assertEquals(minuteReset(headers), 1_020);
});

Deno.test("countAnswer() counts the responses of one minute in any order", () => {
  const first = countAnswer(undefined, { status: 200, headers: limitHeaders({ minute: 57 }) });
  const second = countAnswer(first, { status: 404, headers: limitHeaders({ minute: 58 }) });
  const third = countAnswer(second, { status: 429, headers: limitHeaders({ minute: 0 }) });

  assertEquals(second, { reset: 1_000, limit: 60, used: 3, marks: ["ok", "bad"], refused: 0 });
  assertEquals(third, { reset: 1_000, limit: 60, used: 60, marks: ["ok", "bad"], refused: 1 });
  const late = { status: 200, headers: limitHeaders({ minute: 40, reset: 940 }) };
  assertEquals(countAnswer(third, late), third);
  const next = { status: 304, headers: limitHeaders({ minute: 59, reset: 1_060 }) };
  assertEquals(countAnswer(third, next), { reset: 1_060, limit: 60, used: 1, marks: ["ok"], refused: 0 });
  assertEquals(countAnswer(third, { status: 200, headers: new Headers() }), third);
});

Deno.test("printsOf() shows other clients' requests first, and refused requests last", () => {
  const { per, prints } = printsOf({ reset: 0, limit: 5, used: 4, marks: ["ok", "bad"], refused: 2 });

  assertEquals(per, 1);
  assertEquals(prints, ["other", "other", "ok", "bad", "", "refused", "refused"]);
  const pending = printsOf({ reset: 0, limit: 5, used: 4, marks: ["ok"], refused: 0 }, 3);
  assertEquals(pending.prints, ["ok", "", "", "", ""]);
});

Deno.test("printsOf() shows several requests as one print for larger plans", () => {
  const { per, prints } = printsOf({
    reset: 0,
    limit: 300,
    used: 12,
    marks: Array(7).fill("ok"),
    refused: 6,
  });

  assertEquals([per, prints.length], [5, 62]);
  assertEquals(prints.slice(0, 4), ["other", "ok", "ok", ""]);
  assertEquals(prints.slice(60), ["refused", "refused"]);
  const huge = printsOf({ reset: 0, limit: 2 ** 53, used: 2 ** 52, marks: [], refused: 2 ** 50 });
  assertEquals(huge.prints.length <= 120, true);
});

Deno.test("raceSize() is a few more than the minute has left, or 0 if that is too many", () => {
  const size = (minute: number, day: number, limit = 60) =>
    raceSize([{ name: "minute", limit, left: minute, seconds: 9 }, {
      name: "day",
      limit: 1_000,
      left: day,
      seconds: 9,
    }]);

  assertEquals([size(59, 999), size(68, 999, 300), size(10, 900, 10)], [71, 80, 12]);
  assertEquals([size(69, 999, 300), size(59, 71), raceSize([])], [0, 0, 0]);
});

Deno.test("tally() counts the minute with the most responses, and those over its limit", () => {
  const finishes = (status: number, reset: number, count: number) => Array(count).fill({ status, reset });
  const outcome = tally([
    ...finishes(200, 960, 3),
    ...finishes(200, 1_020, 59),
    ...finishes(429, 1_020, 11),
    ...finishes(0, 0, 1),
    ...finishes(503, 1_020, 1),
  ], (reset: number) => reset === 1_020 ? 58 : 60);

  assertEquals(outcome, { answered: 59, refused: 11, over: 1, otherMinute: 3, lost: 2 });
  assertEquals(tally([], () => 0), { answered: 0, refused: 0, over: 0, otherMinute: 0, lost: 0 });
});
