// What a copy of the service without a part shows; `deno task fork` runs it there.
import { existsSync } from "node:fs";
import { assertEquals, assertRejects } from "@std/assert";
import { CATALOGUE } from "../../src/catalogue/catalogue.ts";
import { openStore } from "../../src/engine/open.ts";
import { helpOf } from "../../src/operator/command_line.ts";
import { clientTasks } from "../../src/process/cli.ts";
import { Harness } from "../support/harness.ts";

const operatorToken = "the-operators-token-in-this-one-test";

/** Whether this checkout has a folder of src. */
function exists(folder: string): boolean {
  return existsSync(`${import.meta.dirname}/../../src/${folder}`);
}

Deno.test("texts speak of messages only if the service has them", async () => {
  await using service = await Harness.open({ catalogue: CATALOGUE, operatorToken });

  const texts = clientTasks(CATALOGUE).map(helpOf);
  for (const path of ["/v1/openapi.json", "/operator/v1/openapi.json", "/metrics"]) {
    texts.push(await (await service.fetch(`GET ${path}`, { key: operatorToken })).text());
  }

  const words = /\bmessages\b|\bqueue|\ba message\b/i;
  assertEquals(texts.some((text) => words.test(text)), exists("messages"));
});

Deno.test({
  name: "openStore() says that a KV server or Deno Deploy needs engine/remote if it is missing",
  ignore: exists("engine/remote"),
  async fn() {
    for (const path of ["http://127.0.0.1:1/", undefined]) {
      await assertRejects(
        () => openStore(path, { clock: Date.now, create: true }),
        Error,
        "This copy cannot use a KV server: src/engine/remote is missing.",
      );
    }
  },
});
