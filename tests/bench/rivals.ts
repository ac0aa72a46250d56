import { KEYS, LIMITED_KEY, UNKNOWN_KEY } from "./contenders/fixture.ts";
import type { Session } from "./session.ts";
import type { Callers, Target } from "./target.ts";

/** A server that the service is compared with. */
export type Rival = "ceiling" | "counted" | "hono" | "fastify" | "express";

/** How a measurement wants a rival. */
export interface RivalOptions {
  /** The request whose answer the ceilings repeat; no other rival reads it. */
  readonly original?: { readonly url: string; readonly key: string };
  /** A module to run in the process before the rival. */
  readonly preload?: string;
}

/** Every rival's column heading and its script. */
export const RIVALS: Readonly<Record<Rival, { readonly name: string; readonly script: string }>> = {
  ceiling: { name: "Constant reply", script: "ceiling.ts" },
  counted: { name: "…after a commit", script: "counted_ceiling.ts" },
  hono: { name: "Hono, Deno KV", script: "hono_kv.ts" },
  fastify: { name: "Fastify, SQLite", script: "fastify_sqlite.ts" },
  express: { name: "Express, SQLite", script: "express_sqlite.ts" },
};

const CALLERS: Callers = { ample: KEYS, limited: LIMITED_KEY, unknown: UNKNOWN_KEY };

/** Starts a rival, with keys and animals, on a folder of its own. */
export async function startRival(
  session: Session,
  rival: Rival,
  { original, preload }: RivalOptions = {},
): Promise<Target> {
  const { name, script } = RIVALS[rival];
  const folder = await session.makeFolder();
  const flags = ["-P=bench", ...preload === undefined ? [] : [`--preload=${preload}`]];
  const words = original === undefined ? [] : [original.url, original.key];
  const server = await session.start({
    args: [...flags, `tests/bench/contenders/${script}`, ...words],
    env: { BENCH_FOLDER: folder },
  });
  return { name, server, callers: CALLERS, folder };
}
