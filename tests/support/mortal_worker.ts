import "../../src/worker.ts";

new BroadcastChannel("mortal workers").onmessage = ({ data }) => {
  if (data === Reflect.get(globalThis, "name")) Deno.readTextFileSync("deno.json");
};
