import type { Callers, Target } from "./target.ts";
import type { Work } from "./works.ts";
import { measure, type Measurement } from "./wrk.ts";

/** An answer that the work does not expect. */
export class UnexpectedAnswer extends Error {}

/** How long to load, and until when at most. */
export interface Duration {
  readonly seconds: number;
  readonly signal: AbortSignal;
}

/**
 * Loads a server with the work, and checks that every answer is an expected one.
 *
 * @throws {UnexpectedAnswer}
 */
export async function load(target: Target, work: Work, { seconds, signal }: Duration): Promise<Measurement> {
  const { name, server: { origin }, callers } = target;
  const { method, path, body, connections } = work;
  const keys = keysOf(work, callers);
  await probe(target, work);
  const measurement = await measure(
    { origin, method, paths: [path], body, keys, connections, seconds },
    signal,
  );
  await probe(target, work);

  const { requests, failures, broken } = measurement;
  const refusal = work.expected.every((status) => status >= 400);
  const unexpected = refusal ? requests - failures : failures;
  const tolerated = work.caller === "limited" ? Math.ceil(seconds / 60) : 0;
  if (broken > 0) {
    throw new UnexpectedAnswer(`${name} left ${broken} requests without an answer: ${work.name}`);
  }
  if (unexpected > tolerated || requests === 0) {
    throw new UnexpectedAnswer(`${name} gave ${unexpected} unexpected answers of ${requests}: ${work.name}`);
  }
  return measurement;
}

/**
 * Sends the work's request once.
 *
 * @throws {UnexpectedAnswer}
 */
export async function probe(target: Target, work: Work): Promise<void> {
  // The first request of a minute is still within the limit.
  if (work.caller === "limited") await send(target, work);
  const status = await send(target, work);
  if (!work.expected.includes(status)) {
    throw new UnexpectedAnswer(`${target.name} answered ${status}: ${work.name}`);
  }
}

/** The request whose answer a constant reply repeats. */
export function originalOf({ server, callers }: Target, work: Work): { url: string; key: string } {
  return { url: server.origin + work.path, key: keysOf(work, callers)[0] ?? "" };
}

/** The keys that the work sends to a server with these callers. */
function keysOf({ caller }: Work, { ample, limited, unknown }: Callers): readonly string[] {
  switch (caller) {
    case "one":
      return ample.slice(0, 1);
    case "everyone":
      return ample;
    case "limited":
      return [limited];
    case "unknown":
      return [unknown];
  }
}

async function send({ server: { origin }, callers }: Target, work: Work): Promise<number> {
  const response = await fetch(origin + work.path, {
    method: work.method,
    headers: { authorization: `Bearer ${keysOf(work, callers)[0]}`, "content-type": "application/json" },
    ...work.body && { body: work.body },
  });
  await response.body?.cancel();
  return response.status;
}
