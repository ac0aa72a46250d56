import { ApiError, ERRORS } from "./error.ts";
import type { Endpoint } from "./router.ts";

/** Path of the texts about deprecations. */
export const DEPRECATIONS_PATH = "/docs/deprecations";

/** When and how an operation is removed. */
export interface Deprecation {
  /** When it was deprecated, in ms since the epoch. */
  readonly since: number;
  /** When it is removed, in ms since the epoch. From then on it returns 410 `gone`. */
  readonly sunset: number;
  /** URL of a text about the deprecation. */
  readonly document: string;
  /** URL of the operation to use instead. */
  readonly successor: string;
  /** What to do instead: a sentence without its full stop, with `code` in backticks. */
  readonly advice: string;
}

/** The names of {@linkcode deprecationHeaders}. */
export const DEPRECATION_HEADERS: readonly string[] = ["Deprecation", "Sunset", "Link"];

/** The headers of every response of a deprecated operation (RFC 9745, RFC 8594, RFC 8288). */
export function deprecationHeaders(
  { since, sunset, document, successor }: Deprecation,
): Readonly<Record<"deprecation" | "sunset" | "link", string>> {
  return {
    deprecation: `@${since / 1_000}`,
    sunset: new Date(sunset).toUTCString(),
    link: `<${document}>; rel="deprecation"; type="text/plain", <${successor}>; rel="successor-version"`,
  };
}

/** Whether an operation with this deprecation has been removed at `now`. */
export function isGone(deprecated: Deprecation | undefined, now: number): boolean {
  return deprecated !== undefined && now >= deprecated.sunset;
}

/** @throws {ApiError} `gone` if the operation has been removed at `now`. */
export function requireLasting(deprecated: Deprecation, now: number): void {
  if (!isGone(deprecated, now)) return;
  throw new ApiError(ERRORS.gone, `This operation has been removed. ${plain(deprecated.advice)}.`);
}

/** A text about the deprecated ones of these operations. */
export function deprecationsText(
  operations: readonly (Endpoint & { readonly deprecated?: Deprecation })[],
): string {
  const texts = operations.map(({ method, path, deprecated }) =>
    deprecated &&
    `${method} ${path} has been deprecated since ${inWords(deprecated.since)} and will be removed on
${inWords(deprecated.sunset)}. From that day on, it returns 410. ${plain(deprecated.advice)} instead.
`
  ).filter((text) => text !== undefined);
  return texts.join("\n") || "No operation is deprecated.\n";
}

/** The UTC day of a time (ms since the epoch), such as `5 December 2030`. */
export function inWords(time: number): string {
  return new Date(time).toLocaleDateString("en-GB", { timeZone: "UTC", dateStyle: "long" });
}

function plain(text: string): string {
  return text.replaceAll("`", "");
}
