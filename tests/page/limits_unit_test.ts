import { assertEquals } from "@std/assert";
import {
  countAnswer,
  minuteReset,
  printsOf,
  raceOf,
  readLimits,
  tally,
} from "../../src/page/script/limits.js";

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

/** A mark of each kind in turn. */
function marks(
  ...kinds: readonly ("ok" | "bad" | "refused")[]
): { kind: "ok" | "bad" | "refused"; text: string }[] {
  return kinds.map((kind, index) => ({ kind, text: `call ${index}` }));
}

Deno.test("countAnswer() counts the responses of one minute in any order", () => {
  const first = countAnswer(undefined, { status: 200, headers: limitHeaders({ minute: 57 }) }, "call 0");
  const second = countAnswer(first, { status: 404, headers: limitHeaders({ minute: 58 }) }, "call 1");
  const third = countAnswer(second, { status: 429, headers: limitHeaders({ minute: 0 }) }, "call 2");

  assertEquals(second, { reset: 1_000, limit: 60, used: 3, marks: marks("ok", "bad") });
  assertEquals(third, { reset: 1_000, limit: 60, used: 60, marks: marks("ok", "bad", "refused") });
  const late = { status: 200, headers: limitHeaders({ minute: 40, reset: 940 }) };
  assertEquals(countAnswer(third, late, ""), third);
  const next = { status: 304, headers: limitHeaders({ minute: 59, reset: 1_060 }) };
  assertEquals(countAnswer(third, next, "call 0"), { reset: 1_060, limit: 60, used: 1, marks: marks("ok") });
  assertEquals(countAnswer(third, { status: 200, headers: new Headers() }, ""), third);
});

Deno.test("printsOf() shows other clients' requests first, then each own one with its text", () => {
  const minute = { reset: 0, limit: 5, used: 4, marks: marks("ok", "refused", "bad", "refused") };
  const { per, others, admitted, refused } = printsOf(minute);

  assertEquals([per, others], [1, 2]);
  assertEquals(admitted.map(({ kind }) => kind), ["other", "other", "ok", "bad", ""]);
  assertEquals(admitted.map(({ text }) => text).slice(1), ["another client", "call 0", "call 2", "not used"]);
  assertEquals(refused, [{ kind: "refused", text: "call 1" }, { kind: "refused", text: "call 3" }]);
  const pending = printsOf({ reset: 0, limit: 5, used: 4, marks: marks("ok") }, 3);
  assertEquals(pending.admitted.map(({ kind }) => kind), ["ok", "", "", "", ""]);
});

Deno.test("printsOf() shows several requests as one print for larger plans, and a failure among them", () => {
  const own = marks("ok", "bad", "ok", ...Array(4).fill("ok"), ...Array(6).fill("refused"));
  const { per, admitted, refused } = printsOf({ reset: 0, limit: 300, used: 12, marks: own });

  assertEquals([per, admitted.length, refused.length], [5, 60, 2]);
  assertEquals(admitted.slice(0, 4).map(({ kind }) => kind), ["other", "bad", "ok", ""]);
  assertEquals(admitted[1]?.text, "5 requests, the first call 0");
  const many = marks(...Array(2_000).fill("refused"));
  const huge = printsOf({ reset: 0, limit: 2 ** 53, used: 2 ** 52, marks: many });
  assertEquals(huge.admitted.length + huge.refused.length <= 120, true);
});

Deno.test("raceOf() offers a few more requests than the minute has left, or says why there is no race", () => {
  const race = (left: number, day: number, limit = 60, ...own: readonly ("ok" | "refused")[]) =>
    raceOf({ reset: 0, limit, used: limit - left, marks: marks(...own) }, [
      { name: "minute", limit, left, seconds: 9 },
      { name: "day", limit: 1_000, left: day, seconds: 9 },
    ]);

  const offered = [race(59, 999), race(68, 999, 300), race(10, 900, 10)];
  assertEquals(offered.map(({ size }) => size), [71, 80, 12]);
  assertEquals(new Set(offered.map(({ note }) => note)).size, 1);
  const others = [race(69, 999, 300), race(59, 71), race(0, 900, 60, "refused"), raceOf(undefined, [])];
  assertEquals(others.map(({ size }) => size), [0, 0, 0, 0]);
  assertEquals(others.map(({ note }) => note), [
    "Once at most 68 requests are left.",
    "Too few requests are left today.",
    "Again in the next minute.",
    "Ready after your first request.",
  ]);
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
