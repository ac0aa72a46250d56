/** The constant reply, once a number is stored durably: one commit for all who wait, and nothing else. */

import { batched } from "../../../src/kv/batcher.ts";
import { FOLDER, PORT } from "./environment.ts";
import { constantReply } from "./original.ts";

const kv = await Deno.openKv(`${FOLDER}/counted.db`);
let count = 0;

const store = batched<void, void>(async (round) => {
  count += round.length;
  await kv.set(["count"], count);
  for (const { resolve } of round) resolve();
}, { patient: true });

Deno.serve({ port: PORT, hostname: "127.0.0.1", onListen() {} }, async () => {
  await store();
  return constantReply();
});
