import { ApiError } from "./error.ts";
import { ownOf } from "./response.ts";
import { optional } from "./objects.ts";
import { text } from "./scalars.ts";
import type { Optional } from "./schema_types.ts";

const STRICT = "handling=strict";

/** The Prefer header of operations that ignore unknown fields and query parameters unless they are asked not to. */
export const PREFER: Optional<string> = optional(text({
  description:
    `With \`${STRICT}\` (RFC 7240), unknown fields and query parameters get 400 instead of being ignored. The ` +
    `response then has \`Preference-Applied: ${STRICT}\`.`,
}));

const TOKEN = String.raw`[!#$%&'*+.^_\`|~\w-]+`;
const WORD = String.raw`${TOKEN}|"(?:[^"\\]|\\.)*"`;
const VALUE = String.raw`[ \t]*=[ \t]*`;
/** A preference with its parameters, after any commas. Nothing after a malformed one is read. */
const PREFERENCE = new RegExp(
  String
    .raw`[ \t,]*(${TOKEN})(?:${VALUE}(${WORD}))?(?:[ \t]*;(?:[ \t]*${TOKEN}(?:${VALUE}(?:${WORD}))?)?)*[ \t]*(?=,|$)`,
  "gy",
);

/**
 * Whether a Prefer header has the preference `handling=strict` (RFC 7240 sections 2 and 4.4). If it has several of that
 * name, the first one counts.
 */
export function prefersStrict(prefer: string): boolean {
  for (const [, name = "", value = ""] of prefer.matchAll(PREFERENCE)) {
    if (name.toLowerCase() === "handling") return /^"?strict"?$/i.test(value.replaceAll("\\", ""));
  }
  return false;
}

/** Adds Preference-Applied to the response that `make` returns, or to its ApiError. */
export async function withStrictApplied(make: () => Response | Promise<Response>): Promise<Response> {
  try {
    const response = ownOf(await make());
    response.headers.set("preference-applied", STRICT);
    return response;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const headers = { ...error.headers, "preference-applied": STRICT };
    throw new ApiError(error.kind, error.message, headers, error.members);
  }
}
