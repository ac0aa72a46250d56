import { type Operation, operation } from "../api/operation.ts";
import { createResponse } from "../http/response.ts";

const SINCE = Date.UTC(2025, 11, 5);
/** When `getPet` is removed, in ms since the epoch. */
export const SUNSET: number = Date.UTC(2030, 11, 5);
/** The date of SUNSET, in words. */
export const SUNSET_DAY: string = dayOf(SUNSET);
const DOCUMENT = "/docs/deprecations";

/**
 * Headers that announce the removal of `getPet` (RFC 9745, RFC 8594, RFC 8288).
 *
 * @param root Prefix of URLs; empty for relative ones.
 */
export function deprecationHeaders(root: string): Readonly<Record<string, string>> {
  return {
    deprecation: `@${SINCE / 1000}`,
    sunset: new Date(SUNSET).toUTCString(),
    link:
      `<${root}${DOCUMENT}>; rel="deprecation"; type="text/plain", <${root}/v1/pets>; rel="successor-version"`,
  };
}

/** Whether the operation has been removed at `now` (ms since the epoch). */
export function isRemoved(now: number): boolean {
  return now >= SUNSET;
}

/** The document that the deprecation link refers to. */
export const DEPRECATION_OPERATION: Operation = operation({
  id: "getDeprecations",
  method: "GET",
  path: DOCUMENT,
  access: "public",
  tag: "Service",
  summary: "List deprecations",
  answers: { 200: { description: "Deprecated operations, as plain text" } },
}, () => createResponse(TEXT, { headers: { "content-type": "text/plain; charset=utf-8" } }));

const TEXT = `GET /v1/pets/{petId} has been deprecated since ${dayOf(SINCE)} and will be removed on
${SUNSET_DAY}. From that day on, it returns 410. Use GET /v1/pets with the status filter instead.
`;

function dayOf(time: number): string {
  return new Date(time).toLocaleDateString("en-GB", { timeZone: "UTC", dateStyle: "long" });
}
