import { BASE_PATH } from "./api/openapi.ts";
import { createMatcher, type Endpoint } from "./http/router.ts";

/**
 * Makes a function that tells which path was meant by one that is wrong only in case, in slashes at its end or side
 * by side, or for want of the base path. It gives the pattern, as the OpenAPI document writes it, and so nothing that
 * a client sent. Operators' paths are not suggested. The paths of the table are in lower case.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * const suggest = createSuggester([{ method: "GET", path: "/v1/pets/{petId}", access: "key" }]);
 * assertEquals(suggest("/Pets/7/"), "/v1/pets/{petId}");
 * assertEquals(suggest("/v1/pet/7"), undefined);
 * ```
 */
export function createSuggester(endpoints: readonly Endpoint[]): (path: string) => string | undefined {
  const match = createMatcher(endpoints.filter(({ access }) => access !== "operator"));
  return function suggest(path: string): string | undefined {
    const tidy = path.toLowerCase().replaceAll(/\/{2,}/g, "/").replace(/(?<=.)\/$/, "");
    const pattern = match("GET", tidy).pattern || match("GET", BASE_PATH + tidy).pattern;
    return pattern === "" ? undefined : pattern.replaceAll(/:(\w+)/g, "{$1}");
  };
}
