import { hash } from "node:crypto";

/** An animal as every contender stores and returns it. */
export interface Pet {
  id: number;
  name: string;
  categoryId: number;
  status: Status;
}

/** An animal as a client sends it, its default status filled in. */
export type NewPet = Omit<Pet, "id">;

/** What a contender knows of a key. */
export interface ApiKey {
  id: string;
  perMinute: number;
  perDay: number;
}

const STATUSES = ["available", "pending", "sold"] as const;
type Status = typeof STATUSES[number];

const NAMES = [
  ...["Ada", "Biscuit", "Clover", "Domino", "Ember", "Fern", "Gizmo", "Hazel", "Indigo", "Juniper"],
  ...["Koda", "Luna", "Maple", "Nimbus", "Olive", "Pepper", "Quill", "Rusty", "Sable", "Tango"],
];

/** The animals every contender starts with: one page of a list. */
export const ANIMALS: readonly NewPet[] = NAMES.map((name, index) => ({
  name,
  categoryId: index % 4 + 1,
  status: STATUSES[index % STATUSES.length] ?? "available",
}));

/** The body of every create request. */
export const NEW_ANIMAL: string = JSON.stringify({ name: "Umbra", categoryId: 2, status: "available" });

/** Limits no measurement can reach: counting is measured, not refusing. */
export const AMPLE = { perMinute: 100_000_000, perDay: 1_000_000_000 };

/** Limits the first request uses up. */
export const SPENT_AT_ONCE = { perMinute: 1, perDay: 1 };

/** How many keys the work of many callers uses. */
export const KEY_COUNT = 100;

/** Every contender's ample keys; the service makes its own. */
export const KEYS: readonly string[] = Array.from(
  { length: KEY_COUNT },
  (_, index) => `bench-ample-${index}`,
);

/** The key whose limit is one request. */
export const LIMITED_KEY = "bench-limited";

/** A key no contender knows. */
export const UNKNOWN_KEY = "bench-unknown";

/** What stands in a store in place of the key itself. */
export function hashKey(key: string): string {
  return hash("sha256", key, "hex");
}

/** Every key's record, by hash, to be stored before serving. */
export function apiKeyRecords(): [string, ApiKey][] {
  const ample = KEYS.map((key): [string, ApiKey] => [hashKey(key), { id: key, ...AMPLE }]);
  return [...ample, [hashKey(LIMITED_KEY), { id: LIMITED_KEY, ...SPENT_AT_ONCE }]];
}

/** The key in an `Authorization` header, if it holds one. */
export function bearerKey(header: string | undefined): string | undefined {
  return header?.startsWith("Bearer ") ? header.slice("Bearer ".length) : undefined;
}

/** The animal in a request body, if it is a valid one. */
export function parseNewPet(body: unknown): NewPet | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const { name, categoryId, status = "available" } = body as Record<string, unknown>;
  if (typeof name !== "string" || name.length === 0 || name.length > 255) return undefined;
  if (typeof categoryId !== "number" || !Number.isSafeInteger(categoryId)) return undefined;
  const known = parseStatus(status);
  return known && { name, categoryId, status: known };
}

/** The status a query or a body names, if there is one of that name. */
export function parseStatus(value: unknown): Status | undefined {
  return STATUSES.find((status) => status === value);
}

/** The page size a query asks for, if it is a valid one. */
export function parseLimit(value: unknown): number | undefined {
  const limit = Number(value ?? 20);
  return Number.isInteger(limit) && limit >= 1 && limit <= 100 ? limit : undefined;
}

/** The body of an error response. */
export function errorBody(status: number, code: string): { code: string; message: string; status: number } {
  return { code, message: code.replaceAll("_", " "), status };
}
