import "../../src/worker.ts";

addEventListener("message", (event) => {
  if (event instanceof MessageEvent && event.data === "die") throw new Error("A worker died");
});
