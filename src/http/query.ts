import { ApiError } from "./error.ts";

/**
 * Query parameters by name.
 *
 * @throws {ApiError} `invalid_request` when one of the named parameters is given twice.
 */
export function readQuery<Name extends string>(
  query: string,
  names: readonly Name[],
): ReadonlyMap<Name, string> {
  const parameters = new URLSearchParams(query);
  const values = new Map<Name, string>();
  for (const name of names) {
    const [value, ...more] = parameters.getAll(name);
    if (more.length > 0) throw new ApiError("invalid_request", `${name} must be given at most once.`);
    if (value !== undefined) values.set(name, value);
  }
  return values;
}
