// Replies of generated clients.
import { assertEquals } from "@std/assert";
import type { Middleware } from "openapi-fetch";

/** Adds a summary of each reply, such as `GET /account 200`. */
export function noteReplies(replies: string[]): Middleware {
  return {
    onResponse: ({ request, schemaPath, response }) => {
      replies.push(`${request.method} ${schemaPath} ${response.status}`);
    },
  };
}

/** A reply of a generated client. */
export interface Reply<Body = unknown> {
  readonly data?: Body;
  readonly response: Response;
}

/** The body of a reply. Throws if it has another status. */
export function bodyOf<Body>({ data, response }: Reply<Body>, status: number): Body {
  assertEquals(response.status, status);
  if (data === undefined) throw new Error("The reply has no body");
  return data;
}

/** Asserts that a reply has this status, and no body. */
export function assertEmpty({ data, response }: Reply, status: number = 204): void {
  assertEquals([response.status, data], [status, undefined]);
}

/** Asserts that a reply says that nothing has changed. */
export function assertUnchanged(reply: Reply): void {
  assertEmpty(reply, 304);
}

/** Headers of a request for what has changed since a reply. */
export function conditionOf({ response }: Reply): { "If-None-Match": string } {
  return { "If-None-Match": response.headers.get("etag") ?? "" };
}
