import { assertEquals } from "@std/assert";
import { ToyServer } from "../toys/toy_shop.ts";
import { describe, OPERATOR_TOKEN, typeErrors } from "./generated.ts";
import { walkToys } from "./toy_walk.ts";

Deno.test("a client generated from the document of toys calls every operation on them", async () => {
  await using server = await ToyServer.start({ OPERATOR_TOKEN });
  const url = `${server.origin}/v1`;
  await describe(url, "toy_schema.d.ts");

  assertEquals(await typeErrors("toy_walk.ts"), "");
  assertEquals(await walkToys(url), [
    "POST /toys 201",
    "PATCH /toys/{toyId} 200",
    "PATCH /toys/{toyId} 200",
    "GET /toys 200",
    "GET /toys 200",
    "GET /toys/{toyId} 200",
    "DELETE /toys/{toyId} 204",
    "GET /toys/{toyId} 404",
  ]);
});
