import { assertEquals } from "@std/assert";
import {
  bodyOf,
  cellOf,
  columnsFor,
  faultOf,
  METER_PRINTS,
  nextQuery,
  paramsOf,
  pathWith,
  placeOf,
  printsUsed,
  rowParamOf,
  rowsIn,
} from "../../src/page/script/views.js";

const VIEW = { title: "", key: "", keys: "", columns: [] };
const OTHER = {
  id: "",
  method: "GET" as const,
  summary: "",
  description: "",
  confirm: "",
  type: "",
  inputs: [],
  answers: {},
};
const LISTS = ["/v1/tools", "/v1/tools/{toolId}/loans"].map((path) => ({ ...OTHER, path, view: VIEW }));

Deno.test("placeOf() finds the list of an address, with the values in its path and its query", () => {
  const place = placeOf(LISTS, "#/v1/tools/a%2Fb/loans?tool=saw&after=2");

  assertEquals([place?.list.path, place?.params, place?.query], [
    "/v1/tools/{toolId}/loans",
    { toolId: "a%2Fb" },
    "tool=saw&after=2",
  ]);
  assertEquals(placeOf(LISTS, "#/v1/tools")?.query, "");
  for (
    const hash of [
      "",
      "#content",
      "#/v1/tools/1",
      "#/v1/tools//loans",
    ]
  ) {
    assertEquals(placeOf(LISTS, hash), undefined, hash);
  }
});

Deno.test("paramsOf() and pathWith() put the key of a row into the path of its operation", () => {
  const place = placeOf(LISTS, "#/v1/tools/7/loans");
  const path = "/v1/tools/{toolId}/loans/{loanId}/return";

  const params = place ? paramsOf(place, path, "a b") : {};
  assertEquals(params, { toolId: "7", loanId: "a%20b" });
  assertEquals([pathWith(path, params), pathWith(path, {})], ["/v1/tools/7/loans/a%20b/return", path]);
});

Deno.test("rowParamOf() knows rows of the list, and none of another list with a path of the same length", () => {
  const params = ["/v1/cats/{catId}/feed", "/v1/dogs/{dogId}", "/v1/cats"].map((path) =>
    rowParamOf("/v1/cats", path)
  );

  assertEquals(params, ["catId", undefined, undefined]);
});

Deno.test("nextQuery() takes only the query of a link, which may be of another origin", () => {
  assertEquals(
    nextQuery('<https://public.example/x/v1/tools?limit=1&cursor=a%3D>; rel="next"'),
    "limit=1&cursor=a%3D",
  );
  assertEquals([nextQuery('</v1/tools?a=b>; rel="prev"'), nextQuery(null)], [undefined, undefined]);
});

Deno.test("faultOf() says why an answer has nothing to show, also one of a proxy", () => {
  const answer = (status: number, text: string, message = "", type = "application/json") => ({
    ...{ status, text, message, headers: new Headers({ "content-type": type }) },
    ...{ body: "", ms: 1, code: "", field: "", newKeys: [], wait: 0 },
  });

  assertEquals(faultOf(answer(200, "OK")), "");
  assertEquals(faultOf(answer(200, "OK", "", "text/html")), "200 OK. This is not an answer of the service.");
  assertEquals(faultOf(answer(502, "Bad Gateway", "", "text/html")), "502 Bad Gateway.");
  assertEquals(faultOf(answer(503, "", "Try again.")), "503. Try again.");
  assertEquals(faultOf(answer(0, "No response", "Check it.")), "No response. Check it.");
});

Deno.test("cellOf() tells values in words, exact integers and times of the service", () => {
  const [row = {}] = rowsIn(
    '[{"n":9223372036854775807,"at":"2026-11-21T20:47:39.746Z","b":false,"l":["a","b"],"o":{"used":5,"c":[{}]},"m":{"l":1000},"z":null}]',
  );
  const cell = (path: string[], kind: Parameters<typeof cellOf>[1]["kind"] = "plain", limit: string[] = []) =>
    cellOf(row, { label: "", path, kind, limit });

  assertEquals([cell(["n"], "number"), cell(["at"], "time"), cell(["b"], "choice"), cell(["l"], "json")], [
    "9223372036854775807",
    "21 Nov 2026, 20:47",
    "no",
    "a, b",
  ]);
  assertEquals([cell(["o"], "json"), cell(["z"]), cell(["x", "y"]), cell(["at"])], [
    '{"used":5,"c":[{}]}',
    "",
    "",
    "2026-11-21T20:47:39.746Z",
  ]);
  assertEquals(cell(["o", "used"], "meter", ["m", "l"]), "5 of 1,000");
  assertEquals(rowsIn('{"a":1}'), []);
});

Deno.test("columnsFor() leaves out what tells no rows apart, and keeps the key", () => {
  const columns = ["id", "plan", "end", "name"].map((label) =>
    ({ label, path: [label], kind: "plain", limit: [] }) as const
  );
  const rows = [{ id: 1, plan: "free", end: null, name: "a" }, { id: 1, plan: "free", end: null, name: "b" }];
  const shown = (count: number) => {
    const { columns: told, same } = columnsFor(columns, rows.slice(0, count));
    return [...told.map(({ label }) => label), ...same];
  };

  assertEquals([shown(2), shown(1), shown(0)], [["id", "name", "plan: free"], ["id", "plan", "name"], [
    "id",
  ]]);
});

Deno.test("printsUsed() shows any use, and a full meter only if nothing is left", () => {
  const used = (count: number, limit: number) =>
    printsUsed({ count, limit }, { label: "", kind: "meter", path: ["count"], limit: ["limit"] });

  assertEquals([used(0, 60), used(1, 60), used(59, 60), used(60, 60), used(70, 60)], [
    0,
    1,
    9,
    10,
    METER_PRINTS,
  ]);
  assertEquals([used(0, 0), used(NaN, 1)], [0, 0]);
});

Deno.test("bodyOf() sends what was filled in, with texts as texts and numbers digit for digit", () => {
  const input = (name: string, isText: boolean, isNullable = false) => ({
    ...{ name, isText, isNullable },
    ...{ place: "body", choices: [], absent: "", isRequired: false } as const,
  });
  const inputs = [
    input("a", true),
    input("b", false),
    input("c", true, true),
    input("d", true),
    input("e", true),
  ];

  assertEquals(
    bodyOf(inputs, { a: 'x"', b: "9223372036854775807", c: "null", d: " ", e: "null" }),
    '{"a":"x\\"","b":9223372036854775807,"c":null,"e":"null"}',
  );
  assertEquals(bodyOf(inputs, {}), "{}");
});
