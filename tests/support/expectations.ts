import { assert, assertEquals, assertMatch } from "@std/assert";
import { type RawAnswer, RawConnection } from "./raw_connection.ts";
import type { ServerProcess } from "./server_process.ts";

/**
 * What may come back on a connection: a status of the service's own or, where it gets to see no request,
 * the HTTP layer's refusal: a status from 400 to 499, or the end of the connection.
 */
export type Expected = 200 | 201 | 204 | 400 | 401 | 404 | 405 | 411 | 413 | "refused";

/** What is sent on a connection, and what may come back. */
export type RawCase = readonly [name: string, request: string, expected: Expected];

/** Sends each request on a connection of its own, a step each, and sees that the server goes on. */
export async function runCases(
  t: Deno.TestContext,
  server: ServerProcess,
  cases: readonly RawCase[],
): Promise<void> {
  for (const [name, request, expected] of cases) {
    await t.step(name, async () => {
      using connection = await RawConnection.open(server.port);
      await connection.send(request);
      assertAnswer(await connection.receive(), expected);
      await assertAlive(server);
    });
  }
}

/** Makes sure that the server answers others. */
export async function assertAlive(server: ServerProcess): Promise<void> {
  const response = await fetch(`${server.origin}/health`);
  assertEquals(response.status, 200);
  await response.body?.cancel();
}

/** Holds the answer against what is expected, with an Error body from 400 on. */
function assertAnswer(answer: RawAnswer | undefined, expected: Expected): void {
  if (expected === "refused") {
    const status = answer?.status ?? 400;
    assert(status >= 400 && status < 500, `${status}`);
    return;
  }
  assertEquals(answer?.status, expected);
  const body = answer?.body ?? "";
  if (expected >= 400) assertMatch(body, /^\{"code":"[a-z_]+","message":".+","status":\d{3}\}$/);
  if (expected === 204) assertEquals(body, "");
}
