import { assertEquals } from "@std/assert";
import { call, tally, upTo } from "../../support/client.ts";
import { RecordingService } from "../../support/harness.ts";
import { onServer } from "./server.ts";

/** A request that is charged, but whose handler reads and writes nothing. */
const NOWHERE = "GET /v1/nowhere";

Deno.test("service charges four accounts in a commit to a server", async () => {
  await using service = await RecordingService.open({ backend: onServer });
  const issued = await Array.fromAsync(upTo(35), () => service.createAccount("free"));
  service.forget();

  const replies = await Promise.all(issued.map(({ apiKey }) => call(service, apiKey, NOWHERE)));

  assertEquals(tally(replies), { "404 not_found": 35 });
  // A marker, the schema version, and two rows of each account. The other commits open lanes.
  const checks = service.commits.map(({ checks }) => checks).filter((checks) => checks > 1);
  assertEquals(checks, [...Array(8).fill(10), 8]);
});
