import { print } from "../../src/process/process.ts";
import { crash } from "./crash.ts";
import { disk } from "./disk.ts";
import { type Load, overload } from "./overload.ts";

/** For `deno task soak`, which also prints what it measures. */
const isFull = Deno.env.get("SOAK") === "full";
const note = isFull ? print : () => {};
const ignore = Deno.build.os !== "linux";

const KILLS = isFull ? 200 : 3;
/** Beside other tests, good clients can be slow. */
const LOAD: Load = isFull
  ? { connections: 10_000, addresses: 300_000, minDuration: 15, maxSlowdown: 25 }
  : { connections: 300, addresses: 3_000, minDuration: 1, maxSlowdown: 200 };

Deno.test(
  "service loses nothing and applies nothing twice if it and its KV server are killed under mixed load",
  { ignore },
  () => crash(KILLS, note),
);

Deno.test(
  "service serves other clients during an overload, in bounded memory",
  { ignore },
  () => overload(LOAD, note),
);

Deno.test(
  "service returns 503 while the disk is full, and recovers without a restart",
  { ignore },
  () => disk(note),
);
