import { ApiError, ERRORS } from "./error.ts";

/** When and how an operation is removed. */
export interface Deprecation {
  /** When it was deprecated, in ms since the epoch. */
  readonly since: number;
  /** From when on it returns 410 `gone`, in ms since the epoch. */
  readonly sunset: number;
  /** URL of a text about the deprecation. */
  readonly document: string;
  /** URL of the operation to use instead. */
  readonly successor: string;
  /** What to do instead: a sentence without its full stop. */
  readonly advice: string;
}

/** The names of {@linkcode deprecationHeaders}. */
export const DEPRECATION_HEADERS: readonly string[] = ["Deprecation", "Sunset", "Link"];

/** The headers of every response of a deprecated operation (RFC 9745, RFC 8594, RFC 8288). */
export function deprecationHeaders(
  { since, sunset, document, successor }: Deprecation,
): Readonly<Record<string, string>> {
  return {
    deprecation: `@${since / 1_000}`,
    sunset: new Date(sunset).toUTCString(),
    link: `<${document}>; rel="deprecation"; type="text/plain", <${successor}>; rel="successor-version"`,
  };
}

/** @throws {ApiError} `gone` if the operation has been removed at `now`, in ms since the epoch. */
export function requireLasting({ sunset, advice }: Deprecation, now: number): void {
  if (now >= sunset) throw new ApiError(ERRORS.gone, `This operation has been removed. ${advice}.`);
}
