// Assertions about errors and about limit headers.
import { assertEquals, assertMatch } from "@std/assert";

/**
 * Asserts the status, and that the Error body has exactly these fields, with the id of an account that exists. Its
 * message must be of whole sentences.
 */
export async function assertError(
  response: Response,
  status: number,
  code: string,
  message: RegExp = /\S/,
): Promise<void> {
  assertEquals(response.status, status);
  assertEquals(response.headers.get("content-type"), "application/json");
  assertMatch(response.headers.get("cache-control") ?? "", /^no-store\b/);
  const { accountId, ...body }: Record<string, unknown> = await response.json();
  assertEquals([body, accountId !== undefined], [
    { code, message: body.message, status },
    code === "account_exists",
  ]);
  assertMatch(String(body.message), message);
  for (const sentence of String(body.message).split(/(?<=[.?]) /)) assertMatch(sentence, /^[A-Z].*[.?]$/);
}

/** The headers of a refusal that describe a limit. */
export function limitHeadersOf({ headers }: Pick<Response, "headers">): Record<string, string> {
  return Object.fromEntries([...headers].filter(([name]) => /ratelimit|retry-after/.test(name)));
}

/** Asserts that the response has limit headers. */
export function assertLimitHeaders({ headers }: Response): void {
  for (const name of ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"]) {
    assertMatch(headers.get(name) ?? `no ${name}`, /^\d+$/);
  }
}
