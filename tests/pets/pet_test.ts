import { assertEquals, assertThrows } from "@std/assert";
import type { JsonObject } from "../../src/http/body.ts";
import { ApiError } from "../../src/http/error.ts";
import { parseNewPet, parsePetPatch } from "../../src/pets/pet.ts";

const REX = { name: "Rex", categoryId: 7 };
const NAME = "name must have 1 to 255 characters.";
const CHARACTERS =
  "name must have a character other than white space, and no control characters (Unicode Cc).";
const CATEGORY = "categoryId must be an integer from -9223372036854775808 to 9223372036854775807.";
const STATUS = "status must be one of available, pending, sold.";

Deno.test.each<[string, JsonObject, string]>([
  ["an empty name", { name: "" }, NAME],
  ["a name of 256 characters", { name: "🐶".repeat(256) }, NAME],
  ["categoryId 2^63", { categoryId: 2n ** 63n }, CATEGORY],
  ["a name of white space alone", { name: " \u3000" }, CHARACTERS],
  ["a name with a control character", { name: "R\u0000ex" }, CHARACTERS],
  ["an unknown status", { status: "lost" }, STATUS],
  ["a status in another case", { status: "Sold" }, STATUS],
  ["a status of Object.prototype", { status: "constructor" }, STATUS],
  ["a list of statuses", { status: ["sold"] }, STATUS],
  ["a status of null", { status: null }, STATUS],
])("parseNewPet() and parsePetPatch() refuse %s", (_, wrong, message) => {
  for (const parse of [parseNewPet, parsePetPatch]) {
    const error = assertThrows(() => parse({ ...REX, ...wrong }), ApiError);
    assertEquals([error.code, error.message], ["invalid_request", message]);
  }
});

Deno.test.each<[string, JsonObject, string]>([
  ["no name", { categoryId: 7 }, "name is required and must be a string."],
  ["no categoryId", { name: "Rex" }, "categoryId is required and must be an integer"],
  ["names in another case", { Name: "Rex", categoryid: 7 }, "name is required"],
  ["names in a prototype", JSON.parse('{"__proto__":{"name":"Rex","categoryId":7}}'), "name is required"],
])("parseNewPet() refuses %s", (_, object, message) => {
  assertThrows(() => parseNewPet(object), ApiError, message);
});

Deno.test.each<[string, JsonObject]>([
  ["a name with white space, quotes and bidirectional controls", { name: " \u202e\"\\'" }],
  ["255 characters", { name: "🐶".repeat(255) }],
  ["the greatest int64", { categoryId: 2n ** 63n - 1n }],
  ["the least int64", { categoryId: -(2n ** 63n) }],
  ["a status", { status: "pending" }],
  ["all members", { name: "Tom", categoryId: 8n, status: "sold" }],
  ["no members", {}],
])("parseNewPet() and parsePetPatch() take %s, and leave out what they do not know", (_, members) => {
  const object = {
    ...JSON.parse('{"id":99,"unknown":["a"],"__proto__":{"name":"x"},"constructor":null}'),
    ...members,
  };
  const newPet = { ...REX, categoryId: 7n, status: "available", ...members };

  assertEquals<unknown>(parseNewPet({ ...REX, ...object }), newPet);
  assertEquals<unknown>(parsePetPatch(object), members);
});
