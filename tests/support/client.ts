import { assertEquals } from "@std/assert";
import type { ServerProcess } from "./server_process.ts";

/** What a test needs of an answer. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The body, parsed; undefined when it is empty. */
  readonly json: unknown;
}

/** An animal as a test sees it. */
export interface Animal {
  readonly id: number;
  readonly name: string;
}

/** What a request carries beside its method and path. */
export interface CallOptions {
  /** API key to send as bearer credential. */
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Body to send as JSON. */
  readonly json?: unknown;
  /** Gives up waiting for the answer. */
  readonly signal?: AbortSignal | null;
}

/** Sends a request, such as `call(server, "GET /v1/pets", { key })`. */
export async function call(
  { origin }: ServerProcess,
  target: string,
  { key, json, signal = null, ...init }: CallOptions = {},
): Promise<Answer> {
  const [method = "", path = ""] = target.split(" ");
  const headers = new Headers(init.headers);
  if (key !== undefined) headers.set("authorization", `Bearer ${key}`);
  if (json !== undefined) headers.set("content-type", "application/json");
  const body = json === undefined ? null : JSON.stringify(json);
  const response = await fetch(`${origin}${path}`, { method, headers, body, signal });
  const text = await response.text();
  return {
    status: response.status,
    headers: response.headers,
    json: text === "" ? undefined : JSON.parse(text),
  };
}

/** Adds an animal with this name. */
export function addAnimal(
  server: ServerProcess,
  name: string,
  options: Omit<CallOptions, "json">,
): Promise<Answer> {
  return call(server, "POST /v1/pets", { ...options, json: { name, categoryId: 1 } });
}

/** Every animal of the catalogue, by a walk through its pages. */
export async function listAnimals(server: ServerProcess, key: string): Promise<Animal[]> {
  const animals: Animal[] = [];
  for (let path: string | undefined = "/v1/pets?limit=100"; path !== undefined;) {
    const { status, headers, json } = await call(server, `GET ${path}`, { key });
    assertEquals(status, 200);
    if (!Array.isArray(json)) throw new TypeError("Not a list of animals");
    animals.push(...json.map(readAnimal));
    path = /^<[^>]*(\/v1\/pets\?[^>]*)>; rel="next"$/.exec(headers.get("link") ?? "")?.[1];
  }
  return animals;
}

/** The animal in a response body. */
export function readAnimal(json: unknown): Animal {
  if (typeof json === "object" && json !== null && "id" in json && "name" in json) {
    const { id, name } = json;
    if (typeof id === "number" && typeof name === "string") return { id, name };
  }
  throw new TypeError("Not an animal");
}

/** The status of an answer and, of an error, its code. */
export function outcome({ status, json }: Answer): string {
  const isError = typeof json === "object" && json !== null && "code" in json;
  return isError ? `${status} ${json.code}` : `${status}`;
}

/** How many answers came out how. */
export function tally(answers: readonly Answer[]): Record<string, number> {
  const counts = Object.groupBy(answers, outcome);
  return Object.fromEntries(Object.entries(counts).map(([name, same = []]) => [name, same.length]));
}
