import { assertEquals } from "@std/assert";
import { WaitingPlaces } from "../../src/app/waiting_places.ts";

Deno.test("WaitingPlaces takes a place from one request for each that comes, although none has ended yet", () => {
  const places = new WaitingPlaces();
  const client = new AbortController().signal;
  const ended: string[] = [];
  const wait = (sender: string) =>
    places.run(sender, client, (signal) => {
      signal.addEventListener("abort", () => ended.push(sender));
      return new Promise(() => {});
    });

  for (let count = 0; count < 1_000; count++) wait(`${count % 500}`);
  for (const sender of ["a", "b", "c"]) wait(sender);

  assertEquals(ended, ["0", "1", "2"]);
});
