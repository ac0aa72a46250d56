import { ask } from "../answering.ts";
import { load } from "../load.ts";
import { figure, ratio, table } from "../report.ts";
import { startRival } from "../rivals.ts";
import { startService } from "../service.ts";
import { Session } from "../session.ts";
import type { Target } from "../target.ts";
import { note } from "../terminal.ts";
import { type Work, WORKS } from "../works.ts";
import type { CommitCount } from "./count_commits.ts";

interface CommitRate {
  /** Applied per thousand requests. */
  readonly applied: number;
  /** Applied or not, per thousand requests. */
  readonly tried: number;
}

const PRELOAD = `${import.meta.dirname}/count_commits.ts`;

/** How many KV commits a thousand requests cost, beside one commit for each. */
export async function commitsReport(seconds: number, signal: AbortSignal): Promise<string> {
  const rows: string[][] = [];
  for (const work of [WORKS.list, WORKS["list-100-keys"], WORKS.create]) {
    await using session = new Session(signal);
    const service = await rate(await startService(session, { preload: PRELOAD }), work, seconds, signal);
    const hono = await rate(await startRival(session, "hono", { preload: PRELOAD }), work, seconds, signal);
    rows.push([work.name, ...cells(service), ...cells(hono), ratio(service.applied, hono.applied)]);
  }
  return [
    "KV commits per 1,000 requests, 64 connections (tried: also those that a check refused).",
    "",
    table(["", "This service", "tried", "Hono, Deno KV", "tried", "commits, service to Hono"], rows),
  ].join("\n");
}

async function rate(target: Target, work: Work, seconds: number, signal: AbortSignal): Promise<CommitRate> {
  const before = await readCount(target, signal);
  const { requests } = await load(target, work, { seconds, signal });
  const after = await readCount(target, signal);
  const perThousand = (commits: number): number => commits * 1000 / requests;
  const applied = after.applied - before.applied;
  note(`${work.name}: ${target.name} ${applied} commits for ${requests} requests`);
  return {
    applied: perThousand(applied),
    tried: perThousand(applied + after.refused - before.refused),
  };
}

async function readCount(target: Target, signal: AbortSignal): Promise<CommitCount> {
  return await ask(target, signal) as CommitCount;
}

function cells({ applied, tried }: CommitRate): string[] {
  return [figure(applied), figure(tried)];
}
