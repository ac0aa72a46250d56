import { ApiError } from "../http/error.ts";
import { createResponse } from "../http/response.ts";
import type { Route } from "../http/router.ts";

const SINCE = Date.UTC(2025, 11, 5);
const SUNSET = Date.UTC(2030, 11, 5);
const DOCUMENT = "/docs/deprecations";

/** Headers that announce the removal of `getPet` (RFC 9745, RFC 8594, RFC 8288). */
export const DEPRECATION_HEADERS: Readonly<Record<string, string>> = {
  deprecation: `@${SINCE / 1000}`,
  sunset: new Date(SUNSET).toUTCString(),
  link: `<${DOCUMENT}>; rel="deprecation"; type="text/plain", </v1/pets>; rel="successor-version"`,
};

/**
 * Ends the operation at its sunset.
 *
 * @throws {ApiError} `gone` from then on.
 */
export function refuseAfterSunset(now: number): void {
  if (now >= SUNSET) {
    throw new ApiError(
      "gone",
      "This operation was removed. Use GET /v1/pets with the status filter.",
      DEPRECATION_HEADERS,
    );
  }
}

/** The document that the deprecation link leads to. */
export const DEPRECATION_ROUTE: Route = {
  method: "GET",
  path: DOCUMENT,
  access: "public",
  handler: () => createResponse(TEXT, { headers: { "content-type": "text/plain; charset=utf-8" } }),
};

const TEXT = `GET /v1/pets/{petId} is deprecated since 5 December 2025 and will be removed on
5 December 2030; from then on it answers 410. Use GET /v1/pets with the status filter instead.
`;
