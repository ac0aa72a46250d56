import { assertEquals } from "@std/assert";
import { nearestName, shownName } from "../../src/web/unknown_names.ts";

const KNOWN = ["name", "weightInGrams", "status"];

Deno.test.each([
  ["staus", "status"],
  ["stauts", "status"],
  ["Status", "status"],
  ["statuses", "status"],
  ["state", "status"],
  ["nam", "name"],
  ["nmae", "name"],
  ["names", "name"],
  ["weight_in_grams", "weightInGrams"],
  ["WEIGHT-IN-GRAMS", "weightInGrams"],
  ["wheightInGrams", "weightInGrams"],
  ["", undefined],
  ["date", undefined],
  ["id", undefined],
  ["categoryName", undefined],
])("nearestName() of %j is %j", (name, nearest) => {
  assertEquals(nearestName(name, KNOWN), nearest);
});

Deno.test("nearestName() of 65,536 characters is undefined", () => {
  assertEquals(nearestName("x".repeat(65_536), KNOWN), undefined);
});

Deno.test("nearestName() prefers the name with the fewest differences, and the first of two", () => {
  assertEquals(nearestName("statis", ["status", "stati", "statics"]), "status");
  assertEquals(nearestName("Limit", ["limits", "limit"]), "limit");
});

Deno.test.each([
  ["graceSeconds", "graceSeconds"],
  ["x-y.z_0", "x-y.z_0"],
  ["", '""'],
  ["a b", '"a b"'],
  ["a\nb\u001b[2J\u009b", '"a\\u{a}b\\u{1b}[2J\\u{9b}"'],
  ["a\u202eb\u2066c\u200fd\u061c", '"a\\u{202e}b\\u{2066}c\\u{200f}d\\u{61c}"'],
  ["\ud800\u2028\u200b\u{e0041}", '"\\u{d800}\\u{2028}\\u{200b}\\u{e0041}"'],
  ["né🐕", '"né🐕"'],
  ["x".repeat(40), "x".repeat(40)],
  ["x".repeat(41), `"${"x".repeat(40)}…"`],
])("shownName() of %j is %s", (name, shown) => {
  assertEquals(shownName(name), shown);
});

Deno.test("shownName() of 100,000 characters shows 40, whole ones", () => {
  assertEquals(shownName("🐕".repeat(100_000)), `"${"🐕".repeat(40)}…"`);
});
