import { print } from "../../src/process/process.ts";
import { crash } from "./crash.ts";
import { disk } from "./disk.ts";
import { overload } from "./overload.ts";

/** For `deno task soak`, which also prints what it measures. */
const isFull = Deno.env.get("SOAK") === "full";
const note = isFull ? print : () => {};
const ignore = Deno.build.os !== "linux";

const KILLS = isFull ? 200 : 3;

Deno.test(
  "service loses nothing and applies nothing twice if it and its KV server are killed under mixed load",
  { ignore },
  () => crash(KILLS, note),
);

// Beside other tests, good clients are slow.
if (isFull) {
  Deno.test(
    "service serves other clients during an overload, in bounded memory",
    { ignore },
    () => overload(note),
  );
}

Deno.test(
  "service returns 503 while the disk is full, and recovers without a restart",
  { ignore },
  () => disk(note),
);
