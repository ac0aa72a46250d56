import { assert, assertEquals, assertMatch } from "@std/assert";
import fc from "fast-check";
import { raceTold, stepsOf, toldOf } from "../../src/page/script/answer.js";
import {
  printsOf,
  processesOf,
  raceOf,
  standingOf,
  usageAfter,
  usageAt,
} from "../../src/page/script/limits.js";
import {
  buildRequest,
  duration,
  durationInWords,
  type Entry,
  exchange,
  jsonPieces,
  nextCursor,
  readProblem,
  targetOf,
} from "../../src/page/script/request.js";
import { FRESH, sample } from "../../src/page/script/sample.js";
import { lacks } from "../support/programs.ts";

const base = "http://localhost:8000";
const CREATE = { base, method: "POST", path: "/v1/things", type: "application/json", key: "as_test_abcdef" };
const BODY = '{\n  "name": "O\'Hammer \\"X\\" $HOME `id` é \\\\n",\n  "weight": 9223372036854775807\n}';
const FIELDS = [
  { name: "Idempotency-Key", place: "header", value: "it's $HOME `id`" },
  { name: "If-Match", place: "header", value: "" },
  { name: "body", place: "body", value: BODY },
];

Deno.test("buildRequest() omits empty fields, encodes those in the URL, and keeps the body as typed", () => {
  const { method, url, headers, body } = buildRequest(CREATE, FIELDS);
  assertEquals([method, url, body], ["POST", "http://localhost:8000/v1/things", BODY]);
  assertEquals(Object.fromEntries(headers), {
    "Authorization": "Bearer as_test_abcdef",
    "Content-Type": "application/json",
    "Idempotency-Key": "it's $HOME `id`",
  });
  const target = { ...CREATE, method: "GET", path: "/v1/things/{thingId}", key: "" };
  const call = buildRequest(target, [
    { name: "thingId", place: "path", value: "a/b?$&" },
    { name: "limit", place: "query", value: " " },
    { name: "state", place: "query", value: "a&b\ud800" },
    { name: "cursor", place: "query", value: "c" },
  ]);
  assertEquals(targetOf(call), "/v1/things/a%2Fb%3F%24%26?state=a%26b%EF%BF%BD&cursor=c");
  assertEquals([call.headers, targetOf(buildRequest(target, []))], [[], "/v1/things/{thingId}"]);
});

const PROGRAMS = { curl: ["bash", "-c"], javascript: [Deno.execPath(), "eval"], python: ["python3", "-c"] };
const ABSENT = { curl: lacks("bash", "curl"), javascript: false, python: lacks("python3") };
const UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
for (const language of ["curl", "javascript", "python"] as const) {
  const [program = "", ...args] = PROGRAMS[language];
  const run = async (call: Parameters<typeof sample>[1]) => {
    // The command is not everywhere.
    const before = language === "curl" ? "uuidgen() { cat /proc/sys/kernel/random/uuid; }\n" : "";
    const command = new Deno.Command(program, { args: [...args, before + sample(language, call)] });
    const { success, stdout } = await command.output();
    return [success, new TextDecoder().decode(stdout).trim()] as const;
  };

  Deno.test({
    name: `sample() returns a ${language} program that sends the request as it is, with a new key each time`,
    ignore: ABSENT[language],
    async fn() {
      const arrived: unknown[][] = [];
      const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
      await using server = Deno.serve(options, async (request) => {
        const names = ["authorization", "content-type", "idempotency-key"];
        const sent = names.map((name) => request.headers.get(name));
        arrived.push([request.method, new URL(request.url).pathname, ...sent, await request.text()]);
        const problem = { code: "used_up", message: "Wait." };
        return arrived.length === 2 ? Response.json(problem, { status: 429 }) : new Response("fine");
      });
      const base = `http://127.0.0.1:${server.addr.port}`;
      const typed = buildRequest({ ...CREATE, base }, FIELDS);
      const plain = '{\n  "name": "O\'Hammer",\n  "weight": 9223372036854775807\n}';
      const fresh = [["Idempotency-Key", "header", FRESH], ["body", "body", plain]].map((
        [name = "", place = "", value = ""],
      ) => ({
        ...{ name, place, value },
      }));

      const [first, second] = [await run(typed), await run(buildRequest({ ...CREATE, base }, fresh))];
      await run(buildRequest({ ...CREATE, base }, fresh));
      const [read] = await run({ method: "GET", url: `${base}/v1/things?a=b`, headers: [], body: "" });

      assertEquals([first[0], first[1].slice(-4), read], [true, "fine", true]);
      assertMatch(second[1], language === "python" ? /^429 used_up Wait\.$/ : /429[^]*used_up/);
      assertEquals(arrived[0], ["POST", "/v1/things", ...typed.headers.map(([, value]) => value), BODY]);
      assertEquals(arrived[1]?.at(-1), plain);
      const keys = arrived.slice(1, 3).map((sent) => String(sent[4]));
      for (const key of keys) assertMatch(key, UUID);
      assert(keys[0] !== keys[1]);
      assertEquals(arrived[3], ["GET", "/v1/things", null, null, null, ""]);
      for (const body of ["\\", '"', '"""\\n', "a`b", "${a}", "a\nb\\", `it's`]) {
        const field = { name: "body", place: "body", value: body };
        await run(buildRequest({ ...CREATE, base }, [field]));
        assertEquals(arrived.at(-1)?.at(-1), body);
      }
    },
  });
}

Deno.test("sample() quotes what only ends like a new key", () => {
  const headers = [["Idempotency-Key", `$(id) ${FRESH}`], ["Idempotency-Key", FRESH]];

  const code = sample("curl", { method: "GET", url: base, headers, body: "" });
  assertEquals(code.split(" \\\n  ").slice(1), [
    `-H 'Idempotency-Key: $(id) ${FRESH}'`,
    '-H "Idempotency-Key: $(uuidgen)"',
  ]);
});

Deno.test("exchange() reads new keys from any answer but that of a GET, and nothing from a text of a client", async () => {
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  await using server = Deno.serve(options, async (request) => {
    return new Response(await request.text() || '{"apiKey":"as_1"}');
  });
  const url = `http://127.0.0.1:${server.addr.port}/`;
  const keysIn = async (method: string, body: unknown) => {
    const call = { method, url, headers: [], body: body === undefined ? "" : JSON.stringify(body) };
    return (await exchange(call)).newKeys;
  };

  assertEquals(await keysIn("POST", { name: '"apiKey":"x"', apiKey: "as_1" }), ["as_1"]);
  assertEquals(await keysIn("POST", ["as_1", "as_2"].map((apiKey) => [{ apiKey }])), ["as_1", "as_2"]);
  assertEquals([await keysIn("GET", undefined), await keysIn("POST", { name: '"apiKey":"x"' })], [[], []]);
});

Deno.test("exchange() sends a key to no path but that of its request, and follows no redirect", async () => {
  const paths: string[] = [];
  const options = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  await using server = Deno.serve(options, ({ url }) => {
    paths.push(new URL(url).pathname);
    return paths.length === 1 ? new Response("fine") : Response.redirect(new URL("/elsewhere", url), 307);
  });
  const base = `http://127.0.0.1:${server.addr.port}`;
  const send = async (value: string, headers: string[][] = []) => {
    const { status, text } = await exchange({
      method: "GET",
      url: `${base}/a/${value}/b`,
      headers: [["Authorization", "Bearer secret"], ...headers],
      body: "",
    });
    return [status, text];
  };

  assertEquals(await send("%2F..%2F'()*!~?a='#/.."), [200, "OK"]);
  assertEquals(await send("b"), [0, "No response"]);
  for (const value of ["..", ".%2e", ".", "..\\..\\x", "..#", "#", "a\tb"]) {
    assertEquals(await send(value), [0, "Not sent"], value);
  }
  assertEquals(await send("b", [["X-Name", "\u20ac"]]), [0, "Not sent"]);
  assertEquals(paths, ["/a/%2F..%2F'()*!~", "/a/b/b"]);
});

Deno.test("sample() has raw literals, so that one can edit the body", () => {
  const body = '{\n  "id": 9223372036854775807\n}';
  const call = buildRequest(CREATE, [{ name: "body", place: "body", value: body }]);

  assert(sample("curl", call).includes(`--data-raw '${body}'`));
  assert(sample("javascript", call).includes(`body: \`${body}\`,`));
  assert(sample("python", call).includes(`data="""${body}""".encode(),`));
  const tagged = { ...call, headers: [["If-Match", '"it"']] };
  for (const language of ["javascript", "python"]) {
    assert(sample(language, tagged).includes(`"If-Match": '"it"',`));
  }
});

Deno.test("jsonPieces() indents any JSON like JSON.stringify(), and keeps every digit", () => {
  fc.assert(fc.property(fc.jsonValue(), (value) => {
    const pieces = jsonPieces(JSON.stringify(value));
    assertEquals(pieces.map(([, text]) => text).join(""), JSON.stringify(value, null, 2));
  }));
  const kinds = jsonPieces('{"id":9223372036854775807,"a":["b",null]}').map(([kind]) => kind);
  assertEquals(kinds, ["", "name", "", "", "", "name", "", "", "", "", "", "", ""]);
  const digits = jsonPieces("[9223372036854775807]").map(([, text]) => text);
  assertEquals(digits.join(""), "[\n  9223372036854775807\n]");
});

Deno.test("nextCursor(), readProblem() and duration() read what a response says", () => {
  assertEquals(nextCursor('<http://a/v1/things?limit=2&cursor=Mg%3D>; rel="next"'), "Mg=");
  assertEquals(nextCursor('<http://a/v1/things?cursor=Mg>; rel="prev", <http://a/b>; rel="next"'), "");
  const none = { code: "", message: "", field: "" };
  assertEquals(
    ["", "null", "[]", "<html>", '"code"', '{"code":"a b"}'].map(readProblem),
    Array(6).fill(none),
  );
  const times = [1, 98_001, 99_001, 5_999_000, 6_000_000, 86_400_000].map(duration);
  assertEquals(times, ["1 s", "99 s", "2 min", "100 min", "2 h", "24 h"]);
  const words = [1, 2_000, 120_000, 28_800_000].map(durationInWords);
  assertEquals(words, ["1 second", "2 seconds", "2 minutes", "8 hours"]);
});

/** A response, by default under limits of 60 requests a minute and 1,000 a day, of which 900 are left. */
function entry(given = {}): Entry {
  const usual = { status: 200, left: 0, day: 900, reset: 1_000, limit: 60, code: "", isOfDay: false };
  const { status, left, day, reset, limit, code, isOfDay } = { ...usual, ...given };
  const headers = new Headers({
    "ratelimit-policy": `"minute";q=${limit};w=60, "day";q=1000;w=86400`,
    "ratelimit": `"minute";r=${left};t=30, "day";r=${day};t=3600`,
    "x-ratelimit-limit": isOfDay ? "1000" : `${limit}`,
    "x-ratelimit-reset": `${isOfDay ? reset + 3_570 : reset}`,
  });
  const answer = {
    status,
    text: "",
    headers,
    body: "",
    ms: 1,
    code,
    message: "",
    field: "",
    newKeys: [],
    wait: 0,
  };
  return { operation: "listThings", call: buildRequest(CREATE, []), answer };
}

/** Requests with these outcomes. */
function entries(...kinds: readonly ("ok" | "bad" | "refused")[]) {
  return kinds.map((kind) => entry({ status: { ok: 200, bad: 404, refused: 429 }[kind] }));
}

Deno.test("usageAfter() counts the responses of one minute in any order, and no others", () => {
  const late = entry({ status: 404, left: 58, isOfDay: true });
  const rest = [entry({ left: 57 }), late, entry({ status: 429, day: 899 })];
  const before = usageAfter(undefined, entry({ left: 59 }), 0);
  const after = rest.reduce((usage, entry) => usageAfter(usage, entry, 0), before);

  const day = { limit: 1_000, left: 899, until: 3_600_000 };
  assertEquals([after?.left, after?.until, after?.reset, after?.day], [0, 30_000, 1_000, day]);
  assertEquals(after?.entries.slice(1), rest);
  const other = entry();
  other.answer.headers.set("ratelimit", '"hour";r=0;t=9');
  for (
    const ignored of [entry({ left: 40, reset: 940 }), entry({ code: "key_banned", reset: 9_999 }), other]
  ) {
    assertEquals(usageAfter(after, ignored, 0), after);
  }
  const next = usageAfter(after, entry({ left: 59, reset: 1_060 }), 60_000);
  assertEquals([next?.left, next?.entries.length, next?.until], [59, 1, 90_000]);
});

Deno.test("usageAt() has all requests again when a window has ended", () => {
  const usage = usageAfter(undefined, entry({ left: 3 }), 0);

  assertEquals([usageAt(usage, 29_999), usageAt(undefined, 0)], [usage, undefined]);
  const later = usageAt(usage, 30_000);
  assertEquals([later?.left, later?.entries, later?.day.left], [60, [], 900]);
  assertEquals(usageAt(usage, 3_600_000)?.day.left, 1_000);
});

/** Kinds of prints. */
function kindsOf(prints: ReturnType<typeof printsOf>["admitted"]) {
  return prints.map(({ kind }) => kind);
}

Deno.test("processesOf() counts the answers of each process, if the service itself made the ids", () => {
  const answered = (id: string) => {
    const made = entry();
    made.answer.headers.set("x-request-id", id);
    return made;
  };
  const ids = [
    "aaaaaaaa-0001-1",
    "bbbbbbbb-0002-1",
    "aaaaaaaa-0001-2",
    "aaaaaaaa-0001-31",
    "a-b-c",
    "",
    "aaaaaaaa-0001-x",
  ];

  assertEquals(processesOf(ids.map(answered)), [3, 1]);
  assertEquals(processesOf([]), []);
});

Deno.test("printsOf() shows other clients' requests after its own, and several as one print for larger plans", () => {
  const some = entries("ok", "refused", "bad", "refused");
  const prints = printsOf({ limit: 5, left: 1, entries: some });
  assertEquals(kindsOf(prints.admitted), ["ok", "bad", "other", "other", ""]);
  assertEquals([...prints.admitted, ...prints.refused].map(({ entry }) => entry && some.indexOf(entry)), [
    ...[0, 2, undefined, undefined, undefined],
    ...[1, 3],
  ]);
  assertEquals([kindsOf(prints.refused), prints.counts], [["refused", "refused"], [2, 1, 1, 2]]);
  const many = entries("ok", "bad", ...Array(5).fill("ok"), ...Array(6).fill("refused"));
  const { admitted, refused } = printsOf({ limit: 300, left: 288, entries: many });
  const kinds = kindsOf(admitted.slice(0, 4));
  assertEquals([admitted.length, refused.length, ...kinds], [60, 2, "bad", "ok", "other", ""]);
  const most = printsOf({ limit: 60, left: 0, entries: entries(...Array(99).fill("refused")) });
  assertEquals([most.refused.length, most.counts[0]], [60, 99]);
  const huge = printsOf({ limit: 2 ** 53, left: 2 ** 52, entries: entries(...Array(2_000).fill("refused")) });
  assert(huge.admitted.length + huge.refused.length <= 120);
});

Deno.test("standingOf() says what is left, or that it does not know, in every state", () => {
  const known = { now: 0, bannedUntil: 0, form: "held", limit: 60 };
  const usage = usageAfter(undefined, entry({ left: 58 }), 0);
  const used = usageAfter(undefined, entry({ left: 1_000, limit: 1_000, day: 0 }), 0);

  for (const [form, verb] of [["make", "make"], ["paste", "use"]] as const) {
    assertEquals(standingOf(undefined, { ...known, form }), [
      "60 requests a minute",
      `${verb} a key to race`,
    ]);
  }
  assertEquals(standingOf(undefined, known)[0], "Send to see what is left");
  assertEquals(standingOf(usage, known), ["58 of 60 left", "new in 30 s, 900 today"]);
  assertEquals(standingOf(usageAt(usage, 30_000), { ...known, now: 30_000 }), ["60 of 60 left", "900 today"]);
  assertEquals(standingOf(used, known), ["0 of 1,000 left today", "new in 60 min"]);
  assertEquals(standingOf(usage, { ...known, bannedUntil: 300_000 }), ["Banned", "for 5 min"]);
});

Deno.test("raceOf() sends a few more than are left and at most 200, or says why there is no race", () => {
  const race = (left: number, day = 900, limit = 60, isBanned = false, ...kinds: ("ok" | "refused")[]) => {
    const ofDay = { limit: 1_000, left: day, until: 9 };
    return raceOf({ limit, left, until: 9, reset: 9, entries: entries(...kinds), day: ofDay }, isBanned);
  };

  assertEquals([race(188, 900, 300)[0], race(10, 900, 10)[0]], [200, 12]);
  assertEquals(race(58), [70, "The race sends the 58 that are left and 12 more at once."]);
  const rest = "299 are left. The race sends 200 at once: race again for the rest.";
  assertEquals(race(299, 900, 300), [200, rest]);
  assertEquals(
    race(4_999, 9_000, 5_000)[1],
    "4,999 are left. The race sends 200 at once: race again for the rest.",
  );
  assertEquals(race(58, 70), [0, "Too few requests are left today for a race."]);
  assertEquals(race(0), [0, "Race again in the next minute."]);
  assertEquals(race(58, 900, 60, false, "refused"), [0, "Race again in the next minute."]);
  assertEquals(race(58, 900, 60, true), [0, "Race again after the ban."]);
  assertEquals(raceOf(undefined, false), [0, "Race after your first request."]);
});

/** What the page knows of a request. */
const KNOWN = {
  ...{
    meaning: "A list",
    advice: "Try again after Retry-After. Wait longer each time.",
    sunset: "",
    path: "/v1/things",
  },
  ...{ filled: 0, isAdded: false, isCopied: true },
};

/** A request, and a response with this text and these headers. */
function answered(
  status: number,
  given: { body?: string; headers?: Record<string, string>; newKeys?: readonly string[]; key?: string },
) {
  const made = entry({ status });
  const { body = "{}", headers = {}, newKeys = [], key } = given;
  for (const [name, value] of Object.entries(headers)) made.answer.headers.set(name, value);
  const call = key ? { ...made.call, headers: [["Idempotency-Key", key]] } : made.call;
  return {
    ...made,
    call,
    answer: { ...made.answer, body, newKeys, ...readProblem(status < 400 ? "" : body) },
  };
}

Deno.test("toldOf() says what a response means, and what is special about it", () => {
  const told = (given: Parameters<typeof answered>[1], known = {}, status = 200) =>
    toldOf(answered(status, given), { ...KNOWN, ...known }).message;

  assertEquals(told({ body: "[]" }), "A list. There are none yet.");
  assertEquals(told({}, { sunset: "5 December 2030" }), "A list. Deprecated: works until 5 December 2030.");
  assertEquals(
    told({ headers: { "idempotency-replayed": "true" } }),
    "A list. A replay of the first response: nothing was created twice.",
  );
  assertEquals(
    told({ headers: { etag: '"a"' } }, { filled: 2 }),
    "A list. These forms have its id and ETag now.",
  );
  assertEquals(
    told({ newKeys: ["k"] }, { filled: 1, isAdded: true }),
    "Copy now: keys are shown only once. A list. These forms have its id now.",
  );
  assertEquals(told({ newKeys: ["k"] }), "Copy your new key: only this tab has it. A list.");
  const limited = '{"code":"rate_limit_day","message":"The limit per day is used up. Try again in 28800 s."}';
  const { message, todo, kind } = toldOf(answered(429, { body: limited }), KNOWN);
  assertEquals([message, todo, kind], [
    "The limit per day is used up. Try again in 8 hours.",
    "Wait longer each time.",
    "429",
  ]);
});

Deno.test("stepsOf() offers what can follow a response", () => {
  const steps = (status: number, given: Parameters<typeof answered>[1], known = {}) => {
    const all = stepsOf(answered(status, given), { ...KNOWN, ...known });
    return Object.entries(all).flatMap(([name, value]) => value ? [name, value] : []);
  };

  assertEquals(steps(200, {}), []);
  assertEquals(steps(200, { body: "[]" }, { isCopied: false }), ["copiesKey", true, "adds", true]);
  assertEquals(steps(404, {}, { path: "/v1/things/{thingId}" }), ["adds", true]);
  assertEquals(steps(201, { key: "a" }), ["repeats", true]);
  assertEquals(steps(201, { key: "a", headers: { "idempotency-replayed": "true" } }), []);
  assertEquals(steps(412, { headers: { etag: '"b"' } }), ["tag", '"b"']);
  assertEquals(steps(200, { headers: { link: '</v1/things?cursor=9>; rel="next"' } }), ["cursor", "9"]);
  assertEquals(steps(201, { newKeys: ["k"] }, { isAdded: true }), ["addedKey", "k"]);
});

Deno.test("raceTold() says that a race was exact, and what came between", () => {
  const before = usageAfter(undefined, entry({ left: 2 }), 0);
  assert(before);
  const told = (kinds: readonly ("ok" | "bad" | "refused")[], usage = {}) => {
    const sent = entries(...kinds);
    const { head, message } = raceTold(sent, {
      before,
      usage: { ...before, entries: sent, ...usage },
      ms: 7,
    });
    return [head.map(([, text]) => text).join(" "), message];
  };

  const large = { ...before, limit: 5_000, left: 4_999 };
  assertMatch(
    raceTold(entries("ok"), { before: large, usage: large, ms: 7 }).message,
    /with 4,999 left: all fit/,
  );
  const start = "requests at once in 7 ms, with 2 left:";
  assertEquals(told(["ok", "ok", "refused"]), [
    "2 admitted, 1 refused, none over",
    `3 ${start} exactly 2 can succeed.`,
  ]);
  assertEquals(told(["ok", "ok", "ok"])[0], "3 admitted, 0 refused, 1 over");
  assertEquals(told(["ok"])[1], `1 ${start} all fit.`);
  assertEquals(
    told(["ok", "refused", "refused"])[1],
    `3 ${start} exactly 2 can succeed. Other clients of the account took 1.`,
  );
  assertEquals(told(["ok", "ok", "refused"], { entries: [] })[1], `3 ${start} a new minute began meanwhile.`);
  assertEquals(told(["bad", "bad"])[0], "The race did not take place");
});
