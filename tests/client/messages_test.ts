import { assertEquals } from "@std/assert";
import { ServerProcess } from "../process/process.ts";
import { describe, OPERATOR_TOKEN, successesOf, typeErrors } from "./generated.ts";
import { walkMessages } from "./message_walk.ts";

Deno.test("client in TypeScript calls every operation on messages", async () => {
  await using server = await ServerProcess.start({ KV_PATH: ":memory:", OPERATOR_TOKEN });
  const origin = `http://localhost:${server.port}`;
  const documents = [
    await describe(`${origin}/v1`, "schema.d.ts"),
    await describe(`${origin}/operator/v1`, "operator_schema.d.ts"),
  ];

  assertEquals(await typeErrors("message_walk.ts"), "");
  const replies = await walkMessages(origin, OPERATOR_TOKEN);

  const missing = documents.map((document, index) =>
    successesOf(document).filter((success) =>
      success.includes(" /messages") && !replies[index]?.includes(success)
    )
  );
  assertEquals(missing, [[], []]);
});
