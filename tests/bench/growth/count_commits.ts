/** Preloaded into a server's process: counts its KV commits. */

import { answerWhenAsked } from "../answering.ts";

/** Commits since the process started. */
export interface CommitCount {
  applied: number;
  /** A check failed, nothing was stored. */
  refused: number;
}

const count: CommitCount = { applied: 0, refused: 0 };
const { prototype: operation } = Deno.AtomicOperation;
const { prototype: kv } = Deno.Kv;
const { commit } = operation;
const { set } = kv;

operation.commit = async function () {
  const result = await commit.call(this);
  count[result.ok ? "applied" : "refused"]++;
  return result;
};

kv.set = async function (...parameters) {
  const result = await set.apply(this, parameters);
  count.applied++;
  return result;
};

answerWhenAsked(() => Promise.resolve(count));
