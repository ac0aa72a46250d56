import { NEW_ANIMAL } from "./contenders/fixture.ts";
import type { Rival } from "./rivals.ts";

/** A kind of request, and who is measured with it. */
export interface Work {
  readonly name: string;
  readonly connections: number;
  readonly method: "GET" | "POST";
  readonly path: string;
  /** Empty for none. */
  readonly body: string;
  /** Whose keys are sent. */
  readonly caller: "one" | "everyone" | "limited" | "unknown";
  /** The statuses that every answer has one of. */
  readonly expected: readonly number[];
  readonly rivals: readonly Rival[];
}

const OTHERS: readonly Rival[] = ["hono", "fastify", "express"];
const LIST = {
  connections: 64,
  method: "GET",
  path: "/v1/pets?limit=20",
  body: "",
  caller: "one",
  expected: [200],
  rivals: ["ceiling", "counted", ...OTHERS],
} as const satisfies Partial<Work>;

/** The names of works, as `--only` takes them. */
export type WorkName = "list" | "list-256" | "list-100-keys" | "get" | "create" | "refused" | "bad-key";

/** Every work, in the order of the table. */
export const WORKS: Readonly<Record<WorkName, Work>> = {
  "list": { ...LIST, name: "list 20" },
  "list-256": { ...LIST, name: "list 20, 256 connections", connections: 256 },
  "list-100-keys": { ...LIST, name: "list 20, 100 keys", caller: "everyone" },
  "get": { ...LIST, name: "get one", path: "/v1/pets/1" },
  "create": {
    ...LIST,
    name: "create",
    method: "POST",
    path: "/v1/pets",
    body: NEW_ANIMAL,
    expected: [201],
    rivals: OTHERS,
  },
  "refused": {
    ...LIST,
    name: "over the limit (429)",
    caller: "limited",
    expected: [429],
    rivals: ["ceiling", ...OTHERS],
  },
  // The service answers 429 once the address has spent its requests without a valid key.
  "bad-key": {
    ...LIST,
    name: "unknown key (401)",
    caller: "unknown",
    expected: [401, 429],
    rivals: ["ceiling", ...OTHERS],
  },
};

/** Whether the text names a work. */
export function isWorkName(text: string): text is WorkName {
  return Object.hasOwn(WORKS, text);
}
