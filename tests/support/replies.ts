import { Harness, type HarnessRequest } from "./harness.ts";

/** What a response says of the limits. */
export interface Reply {
  readonly status: number;
  readonly limit: number;
  readonly remaining: number;
  /** Unix seconds. */
  readonly reset: number;
  /** Seconds; undefined where there is no such header. */
  readonly retryAfter: number | undefined;
  /** Error code; empty where the response is no error. */
  readonly code: string;
}

/** Another process of the service, on a KV that is closed elsewhere. */
export class OtherProcess extends Harness {
  override [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

/** Sends a request that counts against the limits. */
export async function call(
  service: Harness,
  key?: string,
  target: string = "GET /v1/pets",
  request: HarnessRequest = {},
): Promise<Reply> {
  const response = await service.fetch(target, key === undefined ? request : { ...request, key });
  const { headers, status } = response;
  const code = status < 400 ? "" : (await response.json()).code;
  const number = (name: string) => Number(headers.get(name) ?? NaN);
  return {
    status,
    limit: number("x-ratelimit-limit"),
    remaining: number("x-ratelimit-remaining"),
    reset: number("x-ratelimit-reset"),
    retryAfter: headers.has("retry-after") ? number("retry-after") : undefined,
    code,
  };
}

/** Sends such requests all at once, to the services in turn. */
export function callAtOnce(
  count: number,
  services: readonly Harness[],
  key?: string,
  target?: string,
): Promise<Reply[]> {
  return Promise.all(
    Array.from({ length: Math.ceil(count / services.length) }, () => services).flat().slice(0, count)
      .map((service) => call(service, key, target)),
  );
}

/** How many replies there are of each status, and of each error code. */
export function tally(replies: readonly Reply[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, code } of replies) {
    const name = code ? `${status} ${code}` : `${status}`;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** What admitted requests were told to have left, ascending. */
export function remainders(replies: readonly Reply[]): number[] {
  return replies.filter(({ status }) => status === 200).map(({ remaining }) => remaining).sort((a, b) =>
    a - b
  );
}

/** The numbers from 0 to below `end`. */
export function upTo(end: number): number[] {
  return Array.from({ length: end }, (_, number) => number);
}
