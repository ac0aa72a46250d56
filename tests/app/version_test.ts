import { assertEquals } from "@std/assert";
import { VERSION } from "../../src/app/version.ts";
import { Harness } from "../support/harness.ts";
import { OF_THINGS } from "../support/things.ts";

Deno.test("CHANGES.md starts with the current version", async () => {
  const changes = await Deno.readTextFile(`${import.meta.dirname}/../../src/CHANGES.md`);

  const versions = [...changes.matchAll(/^## (.+)$/gm)].map(([, version]) => version);

  assertEquals(versions.at(0), VERSION);
});

Deno.test("openApiDocument() has the version of the API, not of the release", async () => {
  await using service = await Harness.open();

  const { info } = await (await service.fetch("GET /v1/openapi.json")).json();

  const { version, license } = OF_THINGS.interface;
  assertEquals([info.version, info.license], [version, license]);
});
