/** Types that are missing from Deno's own libraries and from the npm build of `@std`. */

interface JSON {
  /**
   * Parses JSON, and passes the source text of each number to the reviver (ECMAScript, JSON.parse source text access).
   */
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { source?: string }) => unknown,
  ): unknown;
}

declare module "@std/http/etag" {
  /** True when the `If-Match` value matches the tag, compared strongly (RFC 9110 section 13.1.1). */
  export function ifMatch(value: string | null, etag: string | undefined): boolean;
  /** False when the `If-None-Match` value matches the tag, compared weakly (RFC 9110 section 13.1.2). */
  export function ifNoneMatch(value: string | null, etag: string | undefined): boolean;
}

declare module "@std/assert" {
  export function assert(condition: unknown, message?: string): asserts condition;
  export function assertEquals<T>(actual: T, expected: T, message?: string): void;
  export function assertNotEquals<T>(actual: T, expected: T, message?: string): void;
  export function assertStrictEquals<T>(actual: unknown, expected: T, message?: string): void;
  export function assertMatch(actual: string, expected: RegExp, message?: string): void;
  export function assertStringIncludes(actual: string, expected: string, message?: string): void;
  export function assertGreater<T>(actual: T, low: T, message?: string): void;
  export function assertGreaterOrEqual<T>(actual: T, low: T, message?: string): void;
  export function assertLess<T>(actual: T, high: T, message?: string): void;
  export function assertLessOrEqual<T>(actual: T, high: T, message?: string): void;
  export function assertThrows<E extends Error>(
    fn: () => unknown,
    errorClass: new (...parameters: never[]) => E,
    messageIncludes?: string,
  ): E;
  export function assertRejects<E extends Error>(
    fn: () => PromiseLike<unknown>,
    errorClass: new (...parameters: never[]) => E,
    messageIncludes?: string,
  ): Promise<E>;
}
