import type { Deprecation } from "../web/deprecation.ts";
import { type Operation, operation } from "../web/operation.ts";
import { createResponse } from "../web/response.ts";

const DOCUMENT = "/docs/deprecations";

/** The deprecation of `getPet`. `root` is the prefix of URLs; empty for relative ones. */
export function getPetDeprecation(root: string): Deprecation {
  return {
    since: Date.UTC(2025, 11, 5),
    sunset: Date.UTC(2030, 11, 5),
    document: root + DOCUMENT,
    successor: `${root}/v1/pets`,
    advice: "Use GET /v1/pets with the status filter",
  };
}

const { since, sunset, advice } = getPetDeprecation("");
/** The date of its sunset, in words. */
export const SUNSET_DAY: string = dayOf(sunset);

/** The document that the deprecation refers to. */
export const DEPRECATION_OPERATION: Operation = operation({
  id: "getDeprecations",
  method: "GET",
  path: DOCUMENT,
  access: "public",
  tag: "Service",
  summary: "List deprecations",
  answers: { 200: { description: "Deprecated operations, as plain text" } },
}, () => createResponse(TEXT, { headers: { "content-type": "text/plain; charset=utf-8" } }));

const TEXT = `GET /v1/pets/{petId} has been deprecated since ${dayOf(since)} and will be removed on
${SUNSET_DAY}. From that day on, it returns 410. ${advice} instead.
`;

function dayOf(time: number): string {
  return new Date(time).toLocaleDateString("en-GB", { timeZone: "UTC", dateStyle: "long" });
}
