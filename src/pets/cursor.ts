/**
 * The opaque cursor of the place after an animal.
 *
 * @example
 * ```ts
 * import { assertEquals } from "@std/assert";
 *
 * assertEquals(decodeCursor(encodeCursor(20)), 20);
 * assertEquals(decodeCursor("20"), undefined);
 * ```
 */
export function encodeCursor(id: number): string {
  return btoa(String(id)).replaceAll("=", "");
}

/** The id in a cursor, or undefined when no cursor reads like that. */
export function decodeCursor(cursor: string): number | undefined {
  let id: number;
  try {
    id = Number(atob(cursor));
  } catch {
    return undefined;
  }
  return Number.isSafeInteger(id) && id > 0 && encodeCursor(id) === cursor ? id : undefined;
}
