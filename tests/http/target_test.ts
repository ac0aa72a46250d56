import { assertEquals } from "@std/assert";
import { targetOf } from "../../src/http/target.ts";

Deno.test.each([
  ["http://localhost:8000", "/", ""],
  ["http://localhost:8000/", "/", ""],
  ["https://pets.example/v1/pets", "/v1/pets", ""],
  ["http://[::1]:8000/v1/pets?limit=1", "/v1/pets", "?limit=1"],
  ["http://localhost/v1/pets?", "/v1/pets", "?"],
  ["http://localhost/?a=/b", "/", "?a=/b"],
  ["http://localhost/a?b?c=https://d/e", "/a", "?b?c=https://d/e"],
  ["http://localhost//a%2Fb/%zz", "//a%2Fb/%zz", ""],
])("targetOf() splits %s", (url, path, query) => {
  assertEquals(targetOf(url), { path, query });
});
