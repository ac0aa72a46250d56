import { assertEquals } from "@std/assert";
import type { ServerProcess } from "./server_process.ts";

/** What a test needs of an answer. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** The body, parsed. */
  readonly json: unknown;
}

/** An animal as a test creates it. */
export interface Animal {
  readonly id: number;
  readonly name: string;
}

/** A request to send. */
export interface Call {
  readonly authorization: string;
  readonly idempotencyKey?: string;
  /** Body to send, as JSON. */
  readonly body?: unknown;
}

/** Sends a request, such as `call(server, "GET /v1/pets", { authorization })`. */
export async function call(server: ServerProcess, target: string, options: Call): Promise<Answer> {
  const [method = "", path = ""] = target.split(" ");
  const { authorization, idempotencyKey, body } = options;
  const headers = new Headers({ authorization });
  if (idempotencyKey !== undefined) headers.set("idempotency-key", idempotencyKey);
  if (body !== undefined) headers.set("content-type", "application/json");
  const response = await fetch(`${server.origin}${path}`, {
    method,
    headers,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, json: await response.json() };
}

/** Adds an animal with this name. */
export function addAnimal(server: ServerProcess, name: string, options: Omit<Call, "body">): Promise<Answer> {
  return call(server, "POST /v1/pets", { ...options, body: { name, categoryId: 1 } });
}

/** Every animal of the catalogue, by a walk through its pages. */
export async function listAnimals(server: ServerProcess, authorization: string): Promise<Animal[]> {
  const animals: Animal[] = [];
  let path = "/v1/pets?limit=100";
  while (true) {
    const { status, headers, json } = await call(server, `GET ${path}`, { authorization });
    assertEquals(status, 200);
    animals.push(...readAnimals(json));
    const next = /^<[^>]*(\/v1\/pets\?[^>]*)>; rel="next"$/.exec(headers.get("link") ?? "")?.[1];
    if (next === undefined) return animals;
    path = next;
  }
}

/** The animals in a response body. */
export function readAnimals(json: unknown): Animal[] {
  if (!Array.isArray(json)) throw new TypeError("Not a list of animals");
  return json.map(readAnimal);
}

/** The animal in a response body. */
export function readAnimal(json: unknown): Animal {
  if (typeof json === "object" && json !== null && "id" in json && "name" in json) {
    const { id, name } = json;
    if (typeof id === "number" && typeof name === "string") return { id, name };
  }
  throw new TypeError("Not an animal");
}

/** The machine-readable code in an Error body. */
export function errorCode(json: unknown): unknown {
  return typeof json === "object" && json !== null && "code" in json ? json.code : undefined;
}
