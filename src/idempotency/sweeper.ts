import { describeError, type Log } from "../http/log.ts";
import type { ReplyStore } from "./reply_store.ts";

const INTERVAL = 60_000;
const MAX_STEPS = 1_000;

/** Removes expired replies once a minute, in small steps, until the returned function is called. */
export function startSweeper(replies: ReplyStore, clock: () => number, log: Log): () => void {
  let sweeping = false;
  const timer = setInterval(async () => {
    if (sweeping) return;
    sweeping = true;
    await sweepAll(replies, clock(), log);
    sweeping = false;
  }, INTERVAL);
  return () => clearInterval(timer);
}

/** Removes what has expired by `now` (ms), or what a bounded number of steps can of it. Never rejects. */
export async function sweepAll(replies: ReplyStore, now: number, log: Log): Promise<void> {
  try {
    for (let step = 0; step < MAX_STEPS; step++) {
      if (!await replies.sweep(now)) return;
    }
  } catch (error) {
    log.error({ time: new Date(now).toISOString(), id: "", route: "sweep", ...describeError(error) });
  }
}
