import { assertEquals } from "@std/assert";
import { Harness } from "../harness.ts";
import { assertError, assertLimitHeaders } from "../http/assertions.ts";
import { addPets, available, listIds } from "./catalogue.ts";

const LIMIT = /\blimit must be an integer from 1 to 100\b/;
const STATUS = /\bstatus must be one of available, pending, sold\b/;
const CURSOR = /\bcursor must be\b/;

Deno.test.each([
  ["limit=0", LIMIT],
  ["limit=101", LIMIT],
  ["limit=-1", LIMIT],
  ["limit=abc", LIMIT],
  ["limit=1.5", LIMIT],
  ["limit=1e1", LIMIT],
  ["limit=0x10", LIMIT],
  ["limit=", LIMIT],
  ["limit", LIMIT],
  ["limit=%201", LIMIT],
  ["limit=+1", LIMIT],
  ["limit=1000000000000000000000001", LIMIT],
  ["limit=٣", LIMIT],
  ["status=lost", STATUS],
  ["status=SOLD", STATUS],
  ["status=", STATUS],
  ["status=sold,pending", STATUS],
  ["status=__proto__", STATUS],
  ["cursor=", CURSOR],
  ["cursor=20", CURSOR],
  ["cursor=!!!!", CURSOR],
  ["cursor=%F0%9F%90%B6", CURSOR],
  [`cursor=${btoa("0").replaceAll("=", "")}`, CURSOR],
  [`cursor=${btoa("-1").replaceAll("=", "")}`, CURSOR],
  [`cursor=${btoa("1.5").replaceAll("=", "")}`, CURSOR],
  [`cursor=${btoa("1e3").replaceAll("=", "")}`, CURSOR],
  [`cursor=${btoa("rex").replaceAll("=", "")}`, CURSOR],
  [`cursor=${btoa("9007199254740993").replaceAll("=", "")}`, CURSOR],
  ["limit=5&limit=5", /\blimit must be given at most once\b/],
  ["status=sold&status=sold", /\bstatus must be given at most once\b/],
  ["cursor=MQ&cursor=Mg", /\bcursor must be given at most once\b/],
  ["limit=5&status=sold&limit=abc", /\blimit must be given at most once\b/],
])("listPets() refuses ?%s", async (query, message) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();

  const response = await service.fetch(`GET /v1/pets?${query}`, { key });

  assertLimitHeaders(response);
  await assertError(response, 400, "invalid_request", message);
});

Deno.test.each([
  ["", 20],
  ["?limit=1", 1],
  ["?limit=99", 99],
  ["?limit=100", 100],
  ["?l%69mit=%35", 5],
  ["?unknown=1&unknown=2", 20],
])("listPets() with '%s' returns %i of many", async (query, count) => {
  using service = await Harness.open();
  const { secret: key } = await service.issueKey();
  await addPets(service, key, available(101));

  const ids = await listIds(service, key, query);

  assertEquals(ids, Array.from({ length: count }, (_, index) => index + 1));
});
