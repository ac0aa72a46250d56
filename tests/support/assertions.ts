// Assertions about errors and about limit headers.
import { assertEquals, assertMatch } from "@std/assert";

/** What the message of an invalid request is about first: a field, parameter or header, unless it is the body. */
const FIRST = /^(?!The body )(?:The )?(?:fields? |query parameter |path parameter )?("|[\w.[\]-]+)/;

/**
 * Asserts the status, and that the Error body has exactly these fields, with the name that the message of an invalid
 * request begins with, and these texts. Its message must be of whole sentences.
 */
export async function assertError(
  response: Response,
  status: number,
  code: string,
  message: RegExp = /\S/,
  texts: readonly string[] = [],
): Promise<void> {
  assertEquals(response.status, status);
  assertEquals(response.headers.get("content-type"), "application/json");
  assertMatch(response.headers.get("cache-control") ?? "", /^no-store\b/);
  const { field, ...body }: Record<string, unknown> = await response.json();
  const text = String(body.message);
  const named = FIRST.exec(text)?.[1];
  const given = Object.fromEntries(texts.map((name) => [name, String(body[name] ?? "")]));
  assertEquals(Object.values(given).filter((value) => value === ""), [], `empty texts of ${code}`);
  assertEquals([body, field !== undefined], [
    { code, message: text, status, ...given },
    code === "invalid_request" && named !== undefined,
  ]);
  if (field !== undefined && named !== '"') assertEquals(field, named);
  assertMatch(text, message);
  for (const sentence of text.split(/(?<=[.?]) /)) assertMatch(sentence, /^[A-Z].*[.?]$/);
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
