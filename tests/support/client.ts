// Requests to the service, in this process or another, and parsed responses.
import { jumpAhead } from "./time.ts";

// If a test fails and then its harness, too, the report shows the failure of the test as the cause.
Object.defineProperty(SuppressedError.prototype, "cause", {
  get(this: SuppressedError): unknown {
    return this.suppressed;
  },
});

/** Options of a request. */
export interface HarnessRequest extends RequestInit {
  /** API key to send as bearer token. */
  readonly key?: string;
  /** Body to send as JSON. */
  readonly json?: unknown;
}

/** The service: a harness, or a separate process. */
export interface Callable {
  /** Sends a request, such as `fetch("GET /v1/things", { key })`. */
  fetch(target: string, request?: HarnessRequest): Promise<Response>;
}

/** A parsed response. */
export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  /** A JSON body, parsed; undefined if there is none. */
  readonly json: unknown;
  /** Error code; empty if the response is not an error. */
  readonly code: string;
  readonly limit: number;
  readonly remaining: number;
  /** Unix seconds. */
  readonly reset: number;
  /** Seconds; undefined if there is no such header. */
  readonly retryAfter: number | undefined;
}

/** Headers of a JSON body. */
export const JSON_TYPE: Readonly<Record<string, string>> = { "content-type": "application/json" };

/** Creates the request that `fetch()` sends to this origin. */
export function requestTo(
  origin: string,
  target: string,
  { key, json, ...init }: HarnessRequest = {},
): Request {
  const [method = "", path = ""] = target.split(" ");
  const headers = new Headers(init.headers);
  if (key !== undefined) headers.set("authorization", `Bearer ${key}`);
  if (json !== undefined) headers.set("content-type", "application/json");
  const body = json === undefined ? init.body ?? null : JSON.stringify(json);
  return new Request(`${origin}${path}`, { ...init, method, headers, body });
}

/** Sends a request, by default one that counts toward the limits, and reads the response. */
export async function call(
  service: Callable,
  key?: string,
  target: string = "GET /v1/things",
  request: HarnessRequest = {},
): Promise<Reply> {
  const response = await service.fetch(target, key === undefined ? request : { ...request, key });
  const { headers, status } = response;
  const text = await response.text();
  const isJson = text !== "" && headers.get("content-type") === "application/json";
  const json = isJson ? JSON.parse(text) : undefined;
  const number = (name: string) => Number(headers.get(name) ?? NaN);
  return {
    status,
    headers,
    json,
    code: status < 400 ? "" : json.code,
    limit: number("x-ratelimit-limit"),
    remaining: number("x-ratelimit-remaining"),
    reset: number("x-ratelimit-reset"),
    retryAfter: headers.has("retry-after") ? number("retry-after") : undefined,
  };
}

/** Sends requests concurrently, to each service in turn. */
export async function callAtOnce(
  count: number,
  services: readonly Callable[],
  key?: string,
  target?: string,
): Promise<Reply[]> {
  const calls = upTo(Math.ceil(count / services.length)).flatMap(() => services).slice(0, count);
  return await Promise.all(calls.map((service) => call(service, key, target)));
}

/** Gets the account of a key banned: uses up the limit, and keeps sending requests once they count toward a ban. */
export async function getBanned(service: Callable, key: string, limit: number = 60): Promise<void> {
  await callAtOnce(limit + 1, [service], key);
  jumpAhead(5_001);
  await callAtOnce(5 * limit, [service], key);
}

/** The status of a response, and its code if it is an error. */
export function outcome({ status, code }: Pick<Reply, "status" | "code">): string {
  return code ? `${status} ${code}` : `${status}`;
}

/** Number of responses by outcome. */
export function tally(replies: readonly Pick<Reply, "status" | "code">[]): Record<string, number> {
  const counts = Object.groupBy(replies, outcome);
  return Object.fromEntries(Object.entries(counts).map(([name, same = []]) => [name, same.length]));
}

/** X-RateLimit-Remaining of admitted requests, ascending. */
export function remainders(replies: readonly Reply[]): number[] {
  return replies.filter(({ status }) => status === 200).map(({ remaining }) => remaining)
    .sort((a, b) => a - b);
}

/** The numbers from 0 to `end`, exclusive. */
export function upTo(end: number): number[] {
  return Array.from({ length: end }, (_, number) => number);
}

/** Adds a thing. */
export function addThing(
  service: Callable,
  key: string,
  name: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Reply> {
  return call(service, key, "POST /v1/things", { headers, json: { name, weight: 1 } });
}

/** The request for the next page; undefined if there is none. */
export function nextTarget({ headers }: Pick<Response, "headers">): string | undefined {
  const url = /^<([^>]+)>; rel="next"$/.exec(headers.get("link") ?? "")?.[1];
  return url && `GET ${url.replace(/^https?:\/\/[^/]+/, "")}`;
}

/** The response, broken off in its body. */
export async function cut(response: Response): Promise<Response> {
  const bytes = await response.bytes();
  async function* half(): AsyncGenerator<Uint8Array> {
    yield bytes.subarray(0, bytes.length / 2);
    throw new TypeError("The connection broke");
  }
  const { status, headers } = response;
  return new Response(ReadableStream.from(half()), { status, headers });
}
