import { assertEquals, assertMatch, assertThrows } from "@std/assert";
import { ApiError } from "../../src/http/error.ts";
import { parsePetQuery, toQueryString } from "../../src/pets/pet_query.ts";

const LIMIT = "The query parameter limit must be an integer from 1 to 100.";
const STATUS = "The query parameter status must be one of available, pending, sold.";
const CURSOR = "The query parameter cursor must be one that a Link header of this service gave.";

const refused = {
  [LIMIT]: [
    ..."limit=0 limit=101 limit=-1 limit=abc limit=1.5 limit=1e1 limit=0x10 limit= limit limit=%201".split(
      " ",
    ),
    ..."limit=+1 limit=1000000000000000000000001 limit=٣".split(" "),
  ],
  [STATUS]: "status=lost status=SOLD status= status=sold,pending status=__proto__".split(" "),
  [CURSOR]: [
    ..."cursor= cursor=20 cursor=!!!! cursor=é cursor=%F0%9F%90%B6 cursor=MQ== cursor=MQ= cursor=%20MQ".split(
      " ",
    ),
    ...["0", "-1", "1.5", "1e3", "rex", "0001", " 12", "0x1", "Infinity", "9007199254740993"].map((id) =>
      `cursor=${btoa(id).replaceAll("=", "")}`
    ),
    "cursor=MR",
  ],
  "limit must be given at most once.": ["limit=5&limit=5", "limit=5&status=sold&limit=abc"],
  "status must be given at most once.": ["status=sold&status=sold"],
  "cursor must be given at most once.": ["cursor=MQ&cursor=Mg"],
};

for (const [message, queries] of Object.entries(refused)) {
  Deno.test.each(queries)(`parsePetQuery() refuses ?%s: ${message}`, (query) => {
    const error = assertThrows(() => parsePetQuery(`?${query}`), ApiError);

    assertEquals([error.code, error.message], ["invalid_request", message]);
  });
}

Deno.test.each([
  ["", {}],
  ["?limit=1", { limit: 1 }],
  ["?limit=100", { limit: 100 }],
  ["?l%69mit=%35", { limit: 5 }],
  ["?status=pending", { status: "pending" }],
  ["?cursor=MQ", { after: 1 }],
  ["?unknown=1&unknown=2&Limit=0", {}],
])("parsePetQuery() of '%s' differs from the defaults in %o", (query, difference) => {
  assertEquals<unknown>(parsePetQuery(query), { limit: 20, status: undefined, after: 0, ...difference });
});

Deno.test.each([0, 1, 9, 10, 100, 12_345, Number.MAX_SAFE_INTEGER])(
  "parsePetQuery() undoes toQueryString() of a page after the animal %i",
  (id) => {
    for (const status of [undefined, "sold"] as const) {
      const petQuery = { limit: 7, status, after: id };
      const query = toQueryString(petQuery);

      assertMatch(query, /^\?[\w=&-]+$/);
      assertEquals(parsePetQuery(query), petQuery);
    }
  },
);
