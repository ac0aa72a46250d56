/**
 * Preloaded into a server's process: counts its KV commits, and on SIGUSR2 writes the count into a file
 * beside the server's data.
 */

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

Deno.addSignalListener("SIGUSR2", () => {
  const folder = Deno.env.get("KV_PATH")?.replace(/[^/]*$/, "") ?? `${Deno.env.get("BENCH_FOLDER")}/`;
  Deno.writeTextFileSync(`${folder}commits.partial`, JSON.stringify(count));
  Deno.renameSync(`${folder}commits.partial`, `${folder}commits.json`);
});
