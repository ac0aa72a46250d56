import { assertEquals } from "@std/assert";
import { ToyServer } from "../toys/toy_shop.ts";
import { describe, OPERATOR_TOKEN, successesOf, typeErrors } from "./generated.ts";
import { walkToys } from "./toy_walk.ts";

Deno.test("client in TypeScript calls every operation on toys", async () => {
  await using server = await ToyServer.start({ OPERATOR_TOKEN });
  const { origin } = server;
  const documents = [
    await describe(`${origin}/v1`, "toy_schema.d.ts"),
    await describe(`${origin}/operator/v1`, "toy_operator_schema.d.ts"),
  ];

  assertEquals(await typeErrors("toy_walk.ts"), "");
  const replies = await walkToys(origin, OPERATOR_TOKEN);

  const missing = documents.map((document, index) =>
    successesOf(document).filter((success) =>
      success.includes(" /toys") && !replies[index]?.includes(success)
    )
  );
  assertEquals(missing, [[], []]);
});
