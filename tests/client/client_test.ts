import { assertEquals } from "@std/assert";
import { ServerProcess } from "../process/process.ts";
import { SHIPPED } from "../process/shipped.ts";
import { describe, OPERATOR_TOKEN, successesOf, typeErrors } from "./generated.ts";
import { walkAsOperator } from "./operator_walk.ts";
import { walk } from "./walk.ts";

Deno.test("client in TypeScript calls every operation that is not on items or messages", async () => {
  await using server = await ServerProcess.start({ KV_PATH: ":memory:", OPERATOR_TOKEN });
  const origin = `http://localhost:${server.port}`;
  const documents = [
    await describe(`${origin}/v1`, "schema.d.ts"),
    await describe(`${origin}/operator/v1`, "operator_schema.d.ts"),
  ];

  assertEquals(await typeErrors("walk.ts"), "");
  assertEquals(await typeErrors("operator_walk.ts"), "");
  const replies = [
    await walk(`${origin}/v1`),
    await walkAsOperator(`${origin}/operator/v1`, OPERATOR_TOKEN),
  ];

  const isOnOthers = (success: string) => new RegExp(` /(?:${SHIPPED.name}|messages)[/ ]`).test(success);
  const missing = documents.map((document, index) =>
    successesOf(document).filter((success) => !isOnOthers(success) && !replies[index]?.includes(success))
  );
  assertEquals(missing, [[], []]);
});
