/**
 * Calls `use` with a value. If the value is not a promise, the call is synchronous, because a promise costs more than
 * most calls.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(whenReady(2, (value) => value * 2), 4);
 * assertEquals(await whenReady(Promise.resolve(2), (value) => value * 2), 4);
 * ```
 */
export function whenReady<Value, Result>(
  value: Value | Promise<Value>,
  use: (value: Value) => Result | Promise<Result>,
): Result | Promise<Result> {
  return value instanceof Promise ? value.then(use) : use(value);
}
