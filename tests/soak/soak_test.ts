import { print } from "../../src/process/process.ts";
import { crash } from "./crash.ts";
import { disk } from "./disk.ts";
import { mirror } from "./mirror.ts";
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

Deno.test.each([["a file", false], ["a KV server", true]] as const)(
  "feed of changes keeps mirrors exact if processes on %s are killed",
  { ignore },
  (_, isRemote) =>
    mirror({
      isRemote,
      ...isFull
        ? { kills: 20, serverKills: 5, interval: 15_000 }
        : { kills: 1, serverKills: 1, interval: 1_000 },
    }, note),
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
