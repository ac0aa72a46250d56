import { assertEquals } from "@std/assert";
import { VERSION } from "../../src/app/version.ts";
import { Harness } from "../support/harness.ts";

Deno.test("CHANGES.md starts with the current version and ends with 1.0.0", async () => {
  const changes = await Deno.readTextFile(`${import.meta.dirname}/../../src/CHANGES.md`);

  const versions = [...changes.matchAll(/^## (.+)$/gm)].map(([, version]) => version);

  assertEquals([versions.at(0), versions.at(-1)], [VERSION, "1.0.0"]);
});

Deno.test("openApiDocument() has the version of the API, not of the release", async () => {
  await using service = await Harness.open();

  const { info } = await (await service.fetch("GET /v1/openapi.json")).json();

  assertEquals(info.version, "1.0.0");
});
