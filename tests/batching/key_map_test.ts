import { assertEquals } from "@std/assert";
import { KeyMap } from "../../src/batching/change_group.ts";

Deno.test.each<readonly [Deno.KvKey, Deno.KvKey]>([
  [["a", "x"], ["b", "x"]],
  [["x"], ["x", "y", "x"]],
  [["x", "y", "x"], ["x"]],
  [["1", "x"], [1, "x"]],
  [["x", "1"], ["x", 1]],
])("KeyMap tells %j from %j", (one, other) => {
  const map = new KeyMap<string>();
  map.add(one, "one");
  assertEquals(map.get(other), undefined);
  map.add(other, "other");
  assertEquals([map.get(one), map.get(other)], ["one", "other"]);
});
